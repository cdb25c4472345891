"""The gRPC interfaces between kubelet, drivers and monitoring agents, exactly as they go over the wire.

| module | interface |
| --- | --- |
| `registration_pb2` | a plugin registers with the kubelet |
| `dra_v1_pb2`, `dra_v1beta1_pb2` | the kubelet asks a DRA driver to prepare and unprepare claims |
| `health_v1alpha1_pb2` | a DRA driver streams the health of its devices |
| `podresources_v1_pb2` | monitoring agents ask which container has which devices |

Each has a `_pb2_grpc` module with the client's stub and the server's base class. All of them are generated from
`protos/` by `make protos`; to add an interface, add its .proto file there.
"""
