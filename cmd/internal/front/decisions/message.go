package decisions

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/internal/proto/wire"
)

// errWire says that bytes are no DecideRequest.
var errWire = errors.New("the message is no DecideRequest: its wire form is broken")

// size is what a message has.
type size struct{ requests, entries int } // headers, cookies, values of queries and descriptors of all requests

// check reads a message as far as it can be wrong as a whole, so that none of its requests is decided if it is.
func (c *call) check(b []byte) (measured size, err error) {
	c.watch, c.returns = false, c.returns[:0]
	for len(b) > 0 && err == nil {
		f, n := wire.ReadField(b)
		if n < 0 {
			return measured, errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			measured.requests++
			err = measured.checkRequest(f.Bytes)
		case wire.Bytes(2):
			err = c.decodeReturn(f.Bytes)
		case wire.Varint(3):
			c.watch = f.Number() != 0
		}
	}
	return measured, err
}

// checkRequest checks a request. Bytes of ASCII are valid texts, whatever their fields are.
func (measured *size) checkRequest(b []byte) (err error) {
	ascii := wire.IsASCII(b)
	for len(b) > 0 && err == nil {
		f, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1), wire.Bytes(2), wire.Bytes(3), wire.Bytes(4), wire.Bytes(7), wire.Bytes(8):
			if !ascii {
				err = wire.Check(f.Bytes)
			}
		case wire.Bytes(5), wire.Bytes(6), wire.Bytes(9), wire.Bytes(11):
			measured.entries++
			if _, _, short := readEntry(f.Bytes); !short || !ascii {
				err = checkEntry(f.Bytes)
			}
		}
	}
	return err
}

// readEntry reads an entry in its usual form: a short name, then a short value, and nothing else. Others are read field by field.
func readEntry(b []byte) (name, value []byte, short bool) {
	const nameTag, valueTag, more = 1<<3 | byte(protowire.BytesType), 2<<3 | byte(protowire.BytesType), 1 << 7
	if len(b) < 4 || b[0] != nameTag || b[1] >= more {
		return nil, nil, false
	}
	end := 2 + int(b[1])
	if len(b) < end+2 || b[end] != valueTag || b[end+1] >= more || len(b) != end+2+int(b[end+1]) {
		return nil, nil, false
	}
	return b[2:end], b[end+2:], true
}

func checkEntry(b []byte) (err error) {
	for len(b) > 0 && err == nil {
		f, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1), wire.Bytes(2):
			err = wire.Check(f.Bytes)
		}
	}
	return err
}

// decodePart adds the next requests of the message to an empty batch, at most as many as a part has. All texts are
// parts of the message.
func (c *call) decodePart() {
	c.batch.Begin(c.service.guard, c.client(), false)
	c.headers, c.cookies, c.queries, c.descriptors = c.headers[:0], c.cookies[:0], c.queries[:0], c.descriptors[:0]
	for len(c.rest) > 0 && c.batch.Len() < c.service.part {
		f, n := wire.ReadField(c.rest)
		if c.rest = c.rest[n:]; f.ID == wire.Bytes(1) {
			c.decodeRequest(f.Bytes)
		}
	}
}

// decodeRequest adds a request to the batch.
func (c *call) decodeRequest(b []byte) {
	r := remote.Request{}
	headers, cookies, queries, descriptors := len(c.headers), len(c.cookies), len(c.queries), len(c.descriptors)
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			r.Method = wire.Checked(f.Bytes)
		case wire.Bytes(2):
			r.Host = wire.Checked(f.Bytes)
		case wire.Bytes(3):
			r.Path = wire.Checked(f.Bytes)
		case wire.Bytes(4):
			r.IP = wire.Checked(f.Bytes)
		case wire.Bytes(5):
			c.headers = addEntry(c.headers, headers, remote.MaxHeaders, f.Bytes)
		case wire.Bytes(6):
			c.cookies = addEntry(c.cookies, cookies, remote.MaxCookies, f.Bytes)
		case wire.Bytes(7):
			r.Subject = wire.Checked(f.Bytes)
		case wire.Bytes(8):
			r.Domain = wire.Checked(f.Bytes)
		case wire.Bytes(9):
			c.descriptors = addEntry(c.descriptors, descriptors, remote.MaxDescriptors, f.Bytes)
		case wire.Varint(10):
			r.Cost = int64(f.Number())
		case wire.Bytes(11):
			c.queries = addEntry(c.queries, queries, remote.MaxQuery, f.Bytes)
		}
	}
	r.Headers, r.Cookies, r.Query, r.Descriptors = c.headers[headers:], c.cookies[cookies:], c.queries[queries:],
		c.descriptors[descriptors:]
	c.batch.Add(&r)
}

// addEntry adds an entry of the request whose entries begin at from. It keeps one entry more than the
// most, so that the request is refused for it, and no further ones.
func addEntry(all []headgate.DescriptorEntry, from, most int, b []byte) []headgate.DescriptorEntry {
	if len(all)-from > most {
		return all
	}
	if name, value, short := readEntry(b); short {
		return append(all, headgate.DescriptorEntry{Name: wire.Checked(name), Value: wire.Checked(value)})
	}
	var e headgate.DescriptorEntry
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			e.Name = wire.Checked(f.Bytes)
		case wire.Bytes(2):
			e.Value = wire.Checked(f.Bytes)
		}
	}
	return append(all, e)
}

// decodeReturn reads which requests are given back.
func (c *call) decodeReturn(b []byte) error {
	from, message := len(c.returns), uint64(0)
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Varint(1):
			message = f.Number()
		case wire.Varint(2):
			c.returns = append(c.returns, place{index: uint32(f.Number())})
		case wire.Bytes(2): // Whole numbers of one field may be packed.
			for packed := f.Bytes; len(packed) > 0; {
				index, n := protowire.ConsumeVarint(packed)
				if n < 0 {
					return errWire
				}
				packed = packed[n:]
				if c.returns = append(c.returns, place{index: uint32(index)}); len(c.returns) > maxStreamReceipts {
					return tooManyReturns()
				}
			}
		}
	}
	if len(c.returns) > maxStreamReceipts {
		return tooManyReturns()
	}
	for i := from; i < len(c.returns); i++ {
		c.returns[i].message = message
	}
	return nil
}

func tooManyReturns() error {
	return fmt.Errorf("the message gives back more than %d requests: so many receipts are kept for a stream", maxStreamReceipts)
}
