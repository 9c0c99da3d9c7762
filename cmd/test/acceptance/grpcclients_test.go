package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// callsLines is what calls.js and calls.py print: the numbers after the names are gRPC's status codes.
const callsLines = `unary 300000 hello 00ff
status 5 "größer\nas 100%"
unimplemented 12
down 11 20
up 200000
both 10 55 ended as agreed: 100% both
cancelled 1
deadline 4
admitted 0 1
admitted 0 1
refused 8 The limit of the policy calls, 2/1h, is used up true
`

// TestGRPCClients: the clients of Node and Python make every kind of call through the proxy.
func TestGRPCClients(t *testing.T) {
	t.Parallel()
	descriptors := filepath.Join(t.TempDir(), "descriptors")
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: withImports(nil, grpc_testing.File_grpc_testing_test_proto)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(descriptors, set, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program, script string
		// resets is how often the service learns that the client has left, by a cancel and by a deadline. Node's client ends
		// its half of a stream in order before it resets the stream, so the service may take that for the end.
		resets int
	}{{"node", "calls.js", 0}, {"/usr/bin/python3", "calls.py", 2}} {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			service := interop{canceled: make(chan struct{}, 2)}
			i := start(t, grpcConfiguration, "h2c://"+serveGRPC(t, service))
			command := exec.CommandContext(t.Context(), c.program, filepath.Join("testdata", c.script), i.Proxy, descriptors)
			var faults strings.Builder
			command.Stderr = &faults
			got, err := command.Output()
			if err != nil || string(got) != callsLines {
				t.Fatalf("%v: run make deps\n%s\ngot\n%s\nwant\n%s", err, faults.String(), got, callsLines)
			}
			for range c.resets {
				select {
				case <-service.canceled:
				case <-time.After(patience):
					t.Errorf("the service is not told that the client has left, want %d times", c.resets)
				}
			}
		})
	}
}

// withImports appends a file after the files that it imports.
func withImports(files []*descriptorpb.FileDescriptorProto, file protoreflect.FileDescriptor) []*descriptorpb.FileDescriptorProto {
	for _, known := range files {
		if known.GetName() == file.Path() {
			return files
		}
	}
	for i := range file.Imports().Len() {
		files = withImports(files, file.Imports().Get(i).FileDescriptor)
	}
	return append(files, protodesc.ToFileDescriptorProto(file))
}
