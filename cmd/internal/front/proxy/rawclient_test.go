package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	h2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// raw sends the bytes of an HTTP/1 request unchanged.
func raw(t *testing.T, at, sent string) (status, body string) {
	t.Helper()
	head, body, _ := strings.Cut(talk(t, at, sent), "\r\n\r\n")
	if len(head) < len("HTTP/1.1 200") {
		return "none", ""
	}
	return head[len("HTTP/1.1 "):][:3], body
}

// frames sends a request in raw HTTP/2 frames, including values that no regular client
// sends.
func frames(t *testing.T, at string, secured *tls.Config, a attempt) (status, body string) {
	t.Helper()
	var conn net.Conn
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if secured != nil {
		secured = secured.Clone()
		secured.NextProtos, secured.ServerName = []string{"h2"}, "example.com"
		conn = tls.Client(conn, secured)
	}
	var block strings.Builder
	fields, scheme := hpack.NewEncoder(&block), map[bool]string{true: "https", false: "http"}[secured != nil]
	for _, f := range [...][2]string{{":method", "GET"}, {":scheme", scheme}, {":path", a.path}, {":authority", a.host}, {"x-api-key", a.key}, {"cookie", a.cookie}} {
		for value := range strings.SplitSeq(f[1], "\n") {
			_ = fields.WriteField(hpack.HeaderField{Name: f[0], Value: value})
		}
	}
	_, _ = io.WriteString(conn, h2.ClientPreface)
	framer := h2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = framer.WriteSettings()
	_ = framer.WriteHeaders(h2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: true})
	status = "none"
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return status, body
		}
		switch f := frame.(type) {
		case *h2.MetaHeadersFrame:
			status = f.PseudoValue("status")
		case *h2.DataFrame:
			body += string(f.Data())
		case *h2.RSTStreamFrame:
			return "reset", ""
		}
		if f := frame.Header(); f.StreamID == 1 && f.Flags.Has(h2.FlagDataEndStream) {
			return status, body
		}
	}
}
