"""Wake-up topics of the relay. Keys are primary keys as text."""

DELIVERY_RECEIVED = "delivery_received"
DISPATCH_PENDING = "dispatch_pending"
