package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/cmd/internal/testkit/decisions"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	"github.com/headgate/headgate/guard"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/middleware/httplimit"
)

// TestGuardNamesPartsItLacks: a rule of the server that counts by a part which no request of the program has is in the log once, also after
// a reload, and Check of the front gives it. Requests are still decided: the rule may be for other programs.
func TestGuardNamesPartsItLacks(t *testing.T) {
	const plain = "rules:\n- {name: client, match: {path: /client}, key: [\"header:X-Client-Id\"], limits: [2/365d]}\n" +
		"- {name: session, key: [\"cookie:session\", mtls_subject], limits: [9/365d]}\n" +
		"- {name: trial, key: [\"descriptor:tenant\"], limits: [9/365d], mode: shadow}\n" +
		"- {name: query, match: {domain: d}, key: [\"descriptor:tenant\"], limits: [9/365d]}\n"
	const tenants = plain + "- {name: tenants, match: {path: /tenants}, key: [\"descriptor:tenant\"], limits: [9/365d]}\n"
	var log logs.Text
	g := guards.New(t, plain)
	k := connect(t, client.Config{Log: log.Logger()}, decisions.Start(t, g, ""))
	h := httplimit.New(k.Guard(), httplimit.Options{})(http.HandlerFunc(echo))
	ask := func() {
		t.Helper()
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/other", http.NoBody)); w.Code != http.StatusOK {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
	ask()
	if err := httplimit.Check(k.Guard()); err != nil {
		t.Errorf("Check with the rules of before: %v", err)
	}
	if got := log.Take(); strings.Contains(got, "cannot give") {
		t.Errorf("logged %s", got)
	}
	var lacks *guard.UnsuppliedError
	if err := grpclimit.Check(k.Guard()); !errors.As(err, &lacks) || lacks.Part.String() != "cookie:session" {
		t.Errorf("Check of grpclimit: %v", err)
	}
	const fault = "a rule of the server counts by descriptor:tenant, which package httplimit cannot give"
	for _, text := range []string{tenants, plain, tenants} {
		if err := g.Reload(guards.Config(t, text, g.Store())); err != nil {
			t.Fatal(err)
		}
		until(t, "the parts of the rules", func() bool {
			ask()
			err := httplimit.Check(k.Guard())
			return (err != nil) == (text == tenants) && (err == nil || strings.Contains(err.Error(), fault))
		})
	}
	if got := log.Take(); strings.Count(got, fault) != 1 {
		t.Errorf("logged %s, want one line with %q", got, fault)
	}
	httplimit.New(k.Guard(), httplimit.Options{}) // A change of the server must not stop a program.
}

// TestGuardLogsEachFrontOnce: two fronts of one guard that lack the same part have one line each, however often the server reloads.
func TestGuardLogsEachFrontOnce(t *testing.T) {
	const tenants = "rules:\n- {name: tenants, match: {path: /tenants}, key: [\"descriptor:tenant\"], limits: [9/365d]}\n"
	var log logs.Text
	g := guards.New(t, tenants)
	k := connect(t, client.Config{Log: log.Logger()}, decisions.Start(t, g, ""))
	h := httplimit.New(k.Guard(), httplimit.Options{})(http.HandlerFunc(echo))
	grpclimit.Unary(k.Guard(), grpclimit.Options{})
	for _, header := range []string{"X-A", "X-B", "X-C", "X-D"} {
		text := tenants + "- {name: other, match: {path: /others}, key: [\"header:" + header + "\"], limits: [9/365d]}\n"
		if err := g.Reload(guards.Config(t, text, g.Store())); err != nil {
			t.Fatal(err)
		}
		until(t, "the header that the rules read", func() bool {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/other", http.NoBody))
			return slices.Contains(k.Guard().Reads().Headers, header)
		})
	}
	got := log.Take()
	for _, front := range []string{"httplimit", "grpclimit"} {
		if fault := "by descriptor:tenant, which package " + front + " cannot give"; strings.Count(got, fault) != 1 {
			t.Errorf("logged %s, want one line with %q", got, fault)
		}
	}
}

// TestReadsOfOtherVersions: a client before parts, a client of today and one with parts that it does not know read each other's messages.
func TestReadsOfOtherVersions(t *testing.T) {
	file := protodesc.ToFileDescriptorProto(headgatev1.File_headgate_v1_decisions_proto)
	for _, m := range file.GetMessageType() {
		if m.GetName() == "Reads" {
			later := slices.IndexFunc(m.GetField(), func(f *descriptorpb.FieldDescriptorProto) bool { return f.GetName() == "parts" })
			m.Field = m.GetField()[:later]
		}
	}
	former, err := protodesc.NewFile(file, deps{})
	if err != nil {
		t.Fatal(err)
	}
	old := dynamicpb.NewMessage(former.Messages().ByName("Reads"))
	now := &headgatev1.Reads{Headers: []string{"X-A"}, Host: true, Parts: []string{"descriptor:a", "planet:b"}}
	b, err := proto.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(b, old); err != nil {
		t.Fatalf("a former client: %v", err)
	}
	fields := old.Descriptor().Fields()
	if fields.ByName("parts") != nil || !old.Get(fields.ByName("host")).Bool() || old.Get(fields.ByName("headers")).List().Len() != 1 {
		t.Errorf("a former client reads %v", old)
	}
	old.SetUnknown(nil)
	if b, err = proto.Marshal(old); err != nil {
		t.Fatal(err)
	}
	b = protowire.AppendString(protowire.AppendTag(b, 99, protowire.BytesType), "of a later server")
	var read headgatev1.Reads
	if err := proto.Unmarshal(b, &read); err != nil || len(read.GetParts()) != 0 || !read.GetHost() {
		t.Errorf("of a former server: %v, %v", &read, err)
	}
}

// deps finds the files that decisions.proto imports.
type deps struct{}

// FindFileByPath implements protodesc.Resolver.
func (deps) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	imports := headgatev1.File_headgate_v1_decisions_proto.Imports()
	for i := range imports.Len() {
		if imports.Get(i).Path() == path {
			return imports.Get(i).FileDescriptor, nil
		}
	}
	return nil, errors.New("no file " + path)
}

// FindDescriptorByName implements protodesc.Resolver.
func (deps) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	imports := headgatev1.File_headgate_v1_decisions_proto.Imports()
	for i := range imports.Len() {
		if d := imports.Get(i).Messages().ByName(name.Name()); d != nil && d.FullName() == name {
			return d, nil
		}
	}
	return nil, errors.New("no message " + string(name))
}
