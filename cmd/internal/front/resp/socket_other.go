//go:build !linux

package resp

// open does nothing: the connection is read through package net.
func (c *conn) open() {}

func (c *conn) fillRaw() error { return nil }

// write writes answers.
func (c *conn) write(b []byte) error {
	_, err := c.net.Write(b)
	return err
}
