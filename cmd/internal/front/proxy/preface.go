package proxy

// http2Preface is the start of each HTTP/2 connection (RFC 9113, section 3.4). No HTTP/1
// request that net/http serves begins with the complete preface.
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// preface detects the HTTP/2 preface at the start of a connection, however the bytes are
// split. A partial preface proves nothing: POST begins with the same letter, and PRI may
// be an HTTP/1 method. The zero preface is ready to use.
type preface struct {
	found int  // bytes of the preface that have been read
	over  bool // the preface is complete, or the connection begins differently
}

// scan processes the next bytes. It returns true once, when the preface is complete.
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
