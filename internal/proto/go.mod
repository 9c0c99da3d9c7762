module github.com/headgate/headgate/internal/proto

go 1.25.0

require google.golang.org/protobuf v1.33.0
