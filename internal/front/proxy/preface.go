package proxy

// http2Preface begins each connection of HTTP/2 (RFC 9113, section 3.4). No request of
// HTTP/1 that net/http serves begins with all of it.
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// preface finds the preface of HTTP/2 at the beginning of a connection, in whatever
// pieces the client sends it. Less than the whole preface says nothing: POST begins with
// the same letter, and PRI may be a method of HTTP/1. The zero preface is ready.
type preface struct {
	found int  // bytes of the preface that have been read
	over  bool // the preface is complete, or the connection begins with something else
}

// scan takes what was read next. It reports whether the preface is complete now.
func (p *preface) scan(read []byte) bool {
	if p.over {
		return false
	}
	n := min(len(read), len(http2Preface)-p.found)
	if string(read[:n]) != http2Preface[p.found:p.found+n] {
		p.over = true
		return false
	}
	p.found += n
	p.over = p.found == len(http2Preface)
	return p.over
}
