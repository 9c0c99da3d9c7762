package client

import (
	"net/netip"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/proto/wire"
)

// The messages of internal/proto/headgate/v1 are written and read here without the generated code, which takes several
// times as long. TestRequests and TestAnswers compare both.

// appendTo appends the message of a request.
func (r *Request) appendTo(b []byte) []byte {
	b = appendTexts(b, r.Method, r.Host, r.Path, r.Subject, r.Domain)
	for name, value := range r.Headers {
		b = appendPair(b, 5, name, value)
	}
	for name, value := range r.Cookies {
		b = appendPair(b, 6, name, value)
	}
	for name, value := range r.Query {
		b = appendPair(b, 11, name, value)
	}
	return appendRest(b, r.IP, r.Descriptors, r.Cost)
}

// appendRequest appends the message of a request of a guard, with what the rules of the server read.
func appendRequest(b []byte, req *headgate.Request, reads *reading) []byte {
	b = appendTexts(b, req.Method, req.Host, req.Path, req.Subject, req.Domain)
	b = appendLookedUp(b, 5, req.Header, reads.headers)
	b = appendLookedUp(b, 6, req.Cookie, reads.GetCookies())
	b = appendLookedUp(b, 11, req.Query, reads.GetQueries())
	if lines, ok := req.Header.(headgate.Lines); ok {
		for _, name := range reads.GetLines() {
			if all := lines.Lines(name); len(all) > 0 {
				b = appendPair(b, 5, name, strings.Join(all, ", "))
			}
		}
	}
	return appendRest(b, req.IP, req.Descriptors, req.Cost)
}

func appendLookedUp(b []byte, field protowire.Number, from headgate.Values, names []string) []byte {
	if from == nil {
		return b
	}
	for _, name := range names {
		if value, ok := from.Lookup(name); ok {
			b = appendPair(b, field, name, value)
		}
	}
	return b
}

func appendTexts(b []byte, method, host, path, subject, domain string) []byte {
	b = appendText(appendText(appendText(b, 1, method), 2, host), 3, path)
	return appendText(appendText(b, 7, subject), 8, domain)
}

func appendRest(b []byte, ip netip.Addr, entries headgate.Descriptors, cost int64) []byte {
	if ip.IsValid() {
		const longest = 64
		var text [longest]byte
		b = protowire.AppendBytes(protowire.AppendTag(b, 4, protowire.BytesType), ip.AppendTo(text[:0]))
	}
	for i := range entries {
		b = appendPair(b, 9, entries[i].Name, entries[i].Value)
	}
	return wire.AppendNumber(b, 10, uint64(cost))
}

// appendPair appends an entry of a map, or a Descriptor: both have a name and a value.
func appendPair(b []byte, field protowire.Number, name, value string) []byte {
	b, from := wire.BeginMessage(b, field)
	return wire.EndMessage(appendText(appendText(b, 1, name), 2, value), from)
}

// appendText appends a text. Servers refuse a whole message for bytes that are no UTF-8, and end users choose some
// texts: each such sequence is sent as U+FFFD.
func appendText(b []byte, field protowire.Number, text string) []byte {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return wire.AppendText(b, field, text)
}

// encode encodes the requests of calls, in memory of the pool of gRPC.
func encode(calls []*call) *[]byte {
	const around = 1 << 4 // bytes, at most, around a request
	size := 0
	for _, c := range calls {
		size += len(c.data) + around
	}
	message := mem.DefaultBufferPool().Get(size)
	b := (*message)[:0]
	for _, c := range calls {
		b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), c.data)
	}
	*message = b
	return message
}

// appendReturns appends what is given back.
func appendReturns(b []byte, returns []place) []byte {
	for _, at := range returns {
		var from int
		b, from = wire.BeginMessage(b, 2)
		b = wire.AppendNumber(b, 1, at.message)
		b = wire.EndMessage(protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), uint64(at.index)), from)
	}
	return b
}

// codec passes encoded messages through gRPC: a mem.Buffer is sent, and a *[]byte receives.
type codec struct{}

// Name implements encoding.CodecV2.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	buffer, ok := v.(mem.Buffer)
	if !ok {
		return nil, errWire
	}
	return mem.BufferSlice{buffer}, nil
}

// Unmarshal implements encoding.CodecV2. It uses the memory of an earlier message again.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	into, ok := v.(*[]byte)
	if !ok {
		return errWire
	}
	const mostKept = 256 << 10
	n := data.Len()
	if cap(*into) < n || cap(*into) > max(mostKept, 2*n) {
		*into = make([]byte, n, n+n/2)
	}
	*into = (*into)[:n]
	data.CopyTo(*into)
	return nil
}
