package report

import "fmt"

// Path says which HTTP server served a request of the proxy, and why. PathFast is the
// fast path. Every other Path means the server of net/http, and names the reason.
type Path uint8

// The paths of a request.
const (
	// PathFast is the fast path.
	PathFast Path = iota
	// PathOff means that the fast path is switched off.
	PathOff
	// PathHTTP2 means that the client announces HTTP/2 and does not send its preface.
	PathHTTP2
	// PathVersion means HTTP/1.0 or another version.
	PathVersion
	// PathMethod means a method that the fast path does not know, for example CONNECT.
	PathMethod
	// PathTarget means an absolute target, an asterisk, or an invalid target.
	PathTarget
	// PathHost means no Host, several, or one with unusual bytes.
	PathHost
	// PathLength means several values of Content-Length, or an invalid one.
	PathLength
	// PathTransferEncoding means a body in chunks.
	PathTransferEncoding
	// PathExpect means the field Expect.
	PathExpect
	// PathUpgrade means the field Upgrade.
	PathUpgrade
	// PathTrailer means the field Trailer or TE.
	PathTrailer
	// PathConnection means a Connection option other than close and keep-alive.
	PathConnection
	// PathSyntax means a header that is not written as RFC 9112 requires.
	PathSyntax
	// PathSize means a header that is longer than the buffer of the fast path.
	PathSize
	pathCount
)

var pathNames = [pathCount]string{
	"fast", "off", "http2", "version", "method", "target", "host", "length", "transfer_encoding", "expect", "upgrade", "trailer",
	"connection", "syntax", "size",
}

// String returns the name in metrics.
func (p Path) String() string {
	if p < pathCount {
		return pathNames[p]
	}
	return fmt.Sprintf("path(%d)", uint8(p))
}

// Paths lists every path, in the order of the constants.
func Paths() []Path {
	all := make([]Path, pathCount)
	for i := range all {
		all[i] = Path(i)
	}
	return all
}

// Served counts a request by its path.
func (t *Traffic) Served(p Path) { t.paths[p].Add(1) }

// ServedBy returns the number of requests of a path.
func (t *Traffic) ServedBy(p Path) uint64 { return t.paths[p].Load() }
