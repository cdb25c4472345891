"""What a client can do with objects: read, watch, create, update, patch, delete, bind, evict, scale, review."""
