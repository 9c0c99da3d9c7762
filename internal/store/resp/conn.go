package resp

import "net"

// Conn is a connection that checks replies before they are read.
type Conn struct {
	net.Conn

	checker *Checker
}

// Wrap checks a connection. With TLS, wrap the TLS connection. most bounds the bytes of one
// string in the answer to a script.
func Wrap(conn net.Conn, most int) *Conn { return &Conn{conn, New(most)} }

// Read checks what it has read. On a fault, Read gives no bytes and closes the connection. After a
// reply that ends the connection, Read gives the bytes and closes the connection.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if fault := c.checker.Received(p[:n]); fault != nil {
		_ = c.Conn.Close()
		return 0, fault
	}
	if left := c.checker.leaving(); left != nil {
		_ = c.Conn.Close()
		if n == 0 {
			return 0, left
		}
		return n, nil
	}
	return n, err
}

// Write records the commands that it writes: their replies are expected from now on.
func (c *Conn) Write(p []byte) (int, error) {
	if err := c.checker.Sent(p); err != nil {
		return 0, err
	}
	if left := c.checker.leaving(); left != nil {
		return 0, left
	}
	return c.Conn.Write(p)
}
