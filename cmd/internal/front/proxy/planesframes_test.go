package proxy

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	wire "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// framer makes a conversation of frames. Each step is a piece, so that streams do not race.
type framer struct {
	*wire.Framer

	out   bytes.Buffer
	block bytes.Buffer
	pack  *hpack.Encoder
	next  uint32
	c     *conversation
}

// speaking makes a conversation that begins with the preface and the settings of a client.
func speaking(name string, say func(f *framer)) *conversation {
	f := &framer{c: &conversation{name: name, frames: true}, next: 1}
	f.Framer = wire.NewFramer(&f.out, nil)
	f.AllowIllegalWrites = true
	f.pack = hpack.NewEncoder(&f.block)
	f.out.WriteString(wire.ClientPreface)
	_ = f.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 1 << 20})
	_ = f.WriteSettingsAck()
	_ = f.WriteWindowUpdate(0, 1<<20) // No response waits for a window, so that its line in the log has all bytes.
	f.step()
	say(f)
	f.step()
	return f.c
}

// step ends a piece.
func (f *framer) step() {
	if f.out.Len() > 0 {
		f.c.pieces = append(f.c.pieces, f.out.String())
		f.out.Reset()
	}
}

// fields encodes names and values in turn.
func (f *framer) fields(pairs ...string) []byte {
	f.block.Reset()
	for n := 0; n+1 < len(pairs); n += 2 {
		_ = f.pack.WriteField(hpack.HeaderField{Name: pairs[n], Value: pairs[n+1]})
	}
	return bytes.Clone(f.block.Bytes())
}

// header returns the fields of a request. Given pseudo fields replace those of a plain request; the value "-" removes one.
func header(pairs ...string) []string {
	all := []string{":method", "GET", ":scheme", "http", ":authority", "a.example", ":path", "/plain?q=1", "x-api-key", "k"}
	for n := 0; n+1 < len(pairs); n += 2 {
		at := slices.Index(all, pairs[n])
		switch {
		case at < 0 || pairs[n][0] != ':':
			all = append(all, pairs[n], pairs[n+1])
		case pairs[n+1] == "-":
			all = slices.Delete(all, at, at+2)
		default:
			all[at+1] = pairs[n+1]
		}
	}
	return all
}

// open opens a stream.
func (f *framer) open(end bool, pairs ...string) uint32 {
	id := f.next
	f.next += 2
	_ = f.WriteHeaders(wire.HeadersFrameParam{StreamID: id, BlockFragment: f.fields(header(pairs...)...), EndStream: end, EndHeaders: true})
	return id
}

// fetch is a request, and a plain one behind it.
func fetch(name string, pairs ...string) *conversation {
	return speaking(name, func(f *framer) {
		f.open(true, pairs...)
		f.step()
		f.open(true)
	})
}

// upload is a request with a body, and a plain one behind it. The body comes when the handler waits for it.
func upload(name, body string, pairs ...string) *conversation {
	return speaking(name, func(f *framer) {
		id := f.open(false, append([]string{":method", "POST"}, pairs...)...)
		f.step()
		_ = f.WriteData(id, true, []byte(body))
		f.step()
		f.open(true)
	})
}

// readFrames reads the answers and the frames of the connection.
func (t *transcript) readFrames(received []byte) {
	in := wire.NewFramer(nil, bytes.NewReader(received))
	in.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	t.answers, t.after = nil, ""
	streams := map[uint32]*wireMessage{}
	var ids []uint32
	of := func(id uint32) *wireMessage {
		if streams[id] == nil {
			streams[id] = &wireMessage{length: "chunked"}
			ids = append(ids, id)
		}
		return streams[id]
	}
	var events []string
	for {
		frame, err := in.ReadFrame()
		if err != nil {
			break
		}
		h := frame.Header()
		switch f := frame.(type) {
		case *wire.MetaHeadersFrame:
			of(h.StreamID).note(f)
		case *wire.DataFrame:
			of(h.StreamID).body += string(f.Data())
		case *wire.RSTStreamFrame:
			// net/http resets a stream that has ended if the handler's last deadline passes later.
			if !of(h.StreamID).whole || f.ErrCode != wire.ErrCodeInternal {
				events = append(events, fmt.Sprintf("reset %d %v", h.StreamID, f.ErrCode))
			}
		case *wire.GoAwayFrame:
			events = append(events, fmt.Sprintf("goaway %d %v", f.LastStreamID, f.ErrCode))
		case *wire.PingFrame:
			if f.IsAck() {
				events = append(events, fmt.Sprintf("pong %x", f.Data))
			}
		case *wire.SettingsFrame:
			events = append(events, f.String())
		}
		if (h.Type == wire.FrameData || h.Type == wire.FrameHeaders) && h.Flags.Has(wire.FlagDataEndStream) {
			of(h.StreamID).whole = true
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		if streams[id].whole { // Otherwise it is of brokenPart.
			t.answers = append(t.answers, *streams[id])
		}
	}
	t.after = strings.Join(events, "\n")
}

// note adds a header or a trailer.
func (m *wireMessage) note(f *wire.MetaHeadersFrame) {
	status := f.PseudoValue("status")
	to := &m.trailer
	if status != "" {
		m.first += "HTTP/2 " + status + " " // An informational response comes first.
		to = &m.fields
	}
	for _, field := range f.RegularFields() {
		*to = append(*to, field.Name+": "+field.Value)
		if field.Name == "content-length" && status != "" {
			m.length = field.Value
		}
	}
	slices.SortStableFunc(*to, func(a, b string) int {
		return strings.Compare(a[:strings.IndexByte(a, ':')], b[:strings.IndexByte(b, ':')])
	})
}

// frameCorpus returns conversations of HTTP/2.
func frameCorpus() []*conversation {
	var all []*conversation
	for _, target := range targetsOfFrames() {
		all = append(all, fetch(fmt.Sprintf("target %.80q", target), ":path", target))
	}
	for _, host := range differentialHosts {
		all = append(all, fetch(fmt.Sprintf("host %.80q", host), ":authority", host, ":path", "/host/x"))
	}
	for _, method := range []string{"HEAD", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get", "G ET", "", "-", "PRI"} {
		all = append(all, fetch("method "+method, ":method", method), fetch("denied "+method, ":method", method, ":path", "/method/x"))
	}
	all = append(all, fetch("a tunnel", ":method", "CONNECT", ":path", "-", ":scheme", "-"), fetch("a tunnel with a path", ":method", "CONNECT"))
	names := make([]string, 0, len(replyTable))
	for name := range replyTable {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, fetch("answer "+name, ":path", "/x/"+name), fetch("HEAD of "+name, ":method", "HEAD", ":path", "/x/"+name),
			upload("upload to "+name, "hello", ":path", "/x/"+name))
	}
	for _, rule := range []string{"cookie", "host", "user", "denied", "delayed", "soft", "redirected", "degraded", "unavailable", "method", "asked"} {
		all = append(all, fetch("rule "+rule, ":path", "/"+rule+"/x", "cookie", "session=1", "cookie", "a=b", "x-ask", "yes", "x-forwarded-for", "192.0.2.1"),
			upload("upload with rule "+rule, "hello", ":path", "/"+rule+"/x"))
	}
	return slices.Concat(all, fieldFrames(), bodyFrames(), faultFrames())
}

func targetsOfFrames() []string {
	return slices.Concat(differentialPaths, []string{
		"", "-", "*", "x", "//a/x", "/x?", "/x#y", "/x y", "/x\x7f", "/x\x01", "/%", "/a/../b", "/a//b", "/x%c0%af", "http://b.example/y", "http:x", "/" + strings.Repeat("a/", 300),
		"/plain?" + strings.Repeat("q", 1000),
	})
}

// fieldFrames has fields that HTTP/2 or the proxy treats in its own way.
func fieldFrames() (all []*conversation) {
	for _, pairs := range [][]string{
		{"connection", "close"},
		{"connection", "x-a", "x-a", "1"},
		{"keep-alive", "1"},
		{"proxy-connection", "close"},
		{"transfer-encoding", "chunked"},
		{"upgrade", "websocket"},
		{"te", "trailers"},
		{"te", ""},
		{"te", "gzip"},
		{"te", "trailers", "te", "trailers"},
		{"host", "b.example"},
		{":authority", "-", "host", "b.example"},
		{":authority", "-"},
		{":authority", ""},
		{":authority", "u@a.example"},
		{":scheme", "https"},
		{":scheme", "ftp"},
		{":scheme", "-"},
		{":foo", "1"},
		{":status", "200"},
		{":protocol", "websocket"},
		{"X-A", "1"},
		{"x a", "1"},
		{"", "1"},
		{"x:a", "1"},
		{"x-a", " 1"},
		{"x-a", "1\t"},
		{"x-a", "a\r\nb: c"},
		{"x-a", "\x00"},
		{"x-a", "\x80"},
		{"x-a", ""},
		{"x-a", "1", "x-a", "2"},
		{"x_a", "1"},
		{"x-api_key", "2"},
		{"x-forwarded-for", "192.0.2.7"},
		{"x-user-ip", "192.0.2.7"},
		{"forwarded", "for=192.0.2.7"},
		{"x-forwarded-host", "b"},
		{"x-request-id", "theirs"},
		{"content-length", "5"},
		{"content-length", "0"},
		{"expect", "100-continue"},
		{"expect", "x"},
		{"trailer", "x-sum"},
		{"pragma", "no-cache"},
		{"cache-control", "no-cache"},
		{"user-agent", ""},
		{"user-agent", "t", "user-agent", "u"},
		{"cookie", "a=b", "cookie", "session=2", "cookie", "c"},
		{"x-api-key", "again"},
		{"accept-encoding", "gzip"},
		{"x-long", strings.Repeat("y", 3000)},
		{"x-long", strings.Repeat("y", 4000)},
		{"x-long", strings.Repeat("y", 4400)},
		{"x-long", strings.Repeat("y", 8000)},
		{"x-long", strings.Repeat("y", 20000)},
	} {
		name := fmt.Sprintf("%.60q", pairs)
		all = append(all, fetch(name, pairs...), upload(name+" with a body", "hello", pairs...))
		trusted := fetch(name+" from a trusted peer", pairs...)
		trusted.trusted = true
		all = append(all, trusted)
	}
	many := make([]string, 0, 400)
	for n := range 200 {
		many = append(many, "x-"+strconv.Itoa(n), "1")
	}
	return append(all, fetch("many fields", many...))
}

// bodyFrames has bodies, their lengths and trailers. On both planes, a body that the client breaks off ends as 400 or as 499, depending on
// whether the read fails first or the context of the request ends first. So no body here is broken off.
func bodyFrames() (all []*conversation) {
	for _, length := range []string{"5", "+5", "-5", "5, 5", "", "x", "99999999999999999999"} {
		all = append(all, upload("length "+length, "hello", "content-length", length))
	}
	all = append(all, upload("two lengths", "hello", "content-length", "5", "content-length", "5"), upload("no body", ""), upload("an empty body of length 0", "", "content-length", "0"),
		upload("a long body", strings.Repeat("x", 16000)))
	for _, c := range []struct {
		name    string
		fields  []string
		trailer []string
	}{
		{"declared trailers", []string{"trailer", "x-sum"}, []string{"x-sum", "1"}},
		{"trailers that were not declared", nil, []string{"x-sum", "1"}},
		{"trailers that rules read", []string{"trailer", "x-api-key, x-sum, x-forwarded-for"}, []string{"x-api-key", "2", "x-sum", "1", "x-forwarded-for", "192.0.2.1"}},
	} {
		all = append(all, speaking(c.name, func(f *framer) {
			id := f.open(false, append([]string{":method", "POST"}, c.fields...)...)
			_ = f.WriteData(id, false, []byte("hello"))
			f.step()
			_ = f.WriteHeaders(wire.HeadersFrameParam{StreamID: id, BlockFragment: f.fields(c.trailer...), EndStream: true, EndHeaders: true})
			f.step()
			f.open(true)
		}))
	}
	return append(all,
		speaking("a body in parts", func(f *framer) {
			id := f.open(false, ":method", "PUT", "content-length", "10")
			for range 5 {
				_ = f.WriteDataPadded(id, false, []byte("xy"), make([]byte, 7))
				f.step()
			}
			_ = f.WriteData(id, true, nil)
		}),
	)
}

// faultFrames has frames that are not part of a request, and those that break the protocol.
func faultFrames() (all []*conversation) {
	for name, say := range map[string]func(f *framer){
		"pings":                     func(f *framer) { _ = f.WritePing(false, [8]byte{1}); _ = f.WritePing(true, [8]byte{2}) },
		"an unknown frame":          func(f *framer) { _ = f.WriteRawFrame(77, 0, 1, []byte("x")) },
		"a priority":                func(f *framer) { _ = f.WritePriority(1, wire.PriorityParam{StreamDep: 3}) },
		"a priority of its own":     func(f *framer) { _ = f.WritePriority(3, wire.PriorityParam{StreamDep: 3}) },
		"more settings":             func(f *framer) { _ = f.WriteSettings(wire.Setting{ID: wire.SettingHeaderTableSize, Val: 0}) },
		"an invalid setting":        func(f *framer) { _ = f.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 1 << 31}) },
		"settings twice":            func(f *framer) { s := wire.Setting{ID: wire.SettingEnablePush}; _ = f.WriteSettings(s, s) },
		"a reply too many":          func(f *framer) { _ = f.WriteSettingsAck() },
		"a window of nothing":       func(f *framer) { _ = f.WriteWindowUpdate(0, 0) },
		"a window beyond its bound": func(f *framer) { _ = f.WriteWindowUpdate(0, 1<<31-1) },
		"a window before a stream":  func(f *framer) { _ = f.WriteWindowUpdate(5, 1) },
		"a reset before a stream":   func(f *framer) { _ = f.WriteRSTStream(5, wire.ErrCodeCancel) },
		"data before a stream":      func(f *framer) { _ = f.WriteData(5, true, []byte("x")) },
		"data without a stream":     func(f *framer) { _ = f.WriteRawFrame(wire.FrameData, 0, 0, []byte("x")) },
		"a long frame":              func(f *framer) { _ = f.WriteRawFrame(77, 0, 0, make([]byte, 16<<10+1)) },
		"a push": func(f *framer) {
			_ = f.WritePushPromise(wire.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		},
		"a stream of the server": func(f *framer) { f.next = 2; f.open(true); f.next = 3 },
		"an older stream":        func(f *framer) { f.next = 7; f.open(true); f.step(); f.next = 3; f.open(true) },
		"a client that leaves":   func(f *framer) { _ = f.WriteGoAway(0, wire.ErrCodeNo, nil) },
		"a compression fault": func(f *framer) {
			_ = f.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
		},
		"a header in parts": func(f *framer) {
			block := f.fields(header()...)
			_ = f.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: block[:5], EndStream: true})
			f.step()
			_ = f.WriteContinuation(1, false, nil)
			_ = f.WriteContinuation(1, true, block[5:])
			f.next = 3
		},
		"a header that does not end": func(f *framer) {
			_ = f.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(header()...)})
		},
		"a ping in a header": func(f *framer) {
			_ = f.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(header()...)})
			_ = f.WritePing(false, [8]byte{})
		},
		"a header list without end": func(f *framer) {
			_ = f.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(header()...)})
			for range 10 {
				_ = f.WriteContinuation(1, false, f.fields("x", strings.Repeat("y", 3000)))
			}
		},
		"data behind the end": func(f *framer) {
			id := f.open(true, ":path", "/delayed/x")
			f.step()
			_ = f.WriteData(id, true, []byte("x"))
		},
		"streams at once": func(f *framer) {
			f.open(true, ":path", "/delayed/x")
			f.step()
			f.open(true)
			f.step()
			f.open(true, ":path", "/x/large")
		},
	} {
		for _, ending := range []ending{endHalf, endSilence, endReset} {
			c := speaking(name, func(f *framer) {
				say(f)
				f.step()
				f.open(true)
			})
			c.ending = ending
			all = append(all, c)
		}
	}
	return all
}

// TestPlanesFrames sends HTTP/2 to both planes.
func TestPlanesFrames(t *testing.T) {
	all := frameCorpus()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, planeSetup{})
		defer p.stop()
		for _, c := range all {
			p.check(t, c)
		}
		if p.fastRequests() < int64(len(all)) {
			t.Errorf("%d requests took the fast path, want at least %d", p.fastRequests(), len(all))
		}
	})
	if len(all) < 400 {
		t.Errorf("the corpus has %d conversations, want at least 400", len(all))
	}
	t.Logf("%d conversations", len(all))
}
