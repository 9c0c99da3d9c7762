//go:build !unix

package listen

import "net"

// pending reports whether something has arrived that is not read yet; it is not known
// here.
func pending(net.Conn) bool { return false }
