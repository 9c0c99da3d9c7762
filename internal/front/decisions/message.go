package decisions

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/remote"
	"github.com/headgate/headgate/internal/wire"
)

// errWire says that bytes are no DecideRequest.
var errWire = errors.New("the message is no DecideRequest: its wire form is broken")

// countParts counts the requests of an encoded message, and their headers, cookies and descriptors.
func countParts(b []byte) (requests, entries int) {
	wire.EachMessage(b, 1, func(request []byte) {
		requests++
		for len(request) > 0 {
			f, n := wire.ReadField(request)
			if n < 0 {
				return // decode fails there too.
			}
			request = request[n:]
			switch f.ID {
			case wire.Bytes(5), wire.Bytes(6), wire.Bytes(9):
				entries++
			}
		}
	})
	return requests, entries
}

// decode reads the wire form of a message. It copies the bytes once; all texts are parts of the copy.
func (c *call) decode(b []byte) error {
	c.batch.Begin(c.service.guard, c.client())
	c.watch = false
	c.returns, c.headers, c.cookies, c.descriptors = c.returns[:0], c.headers[:0], c.cookies[:0], c.descriptors[:0]
	own := bytes.Clone(b)
	for len(own) > 0 {
		f, n := wire.ReadField(own)
		if n < 0 {
			return errWire
		}
		own = own[n:]
		var err error
		switch f.ID {
		case wire.Bytes(1):
			err = c.decodeRequest(f.Bytes)
		case wire.Bytes(2):
			err = c.decodeReturn(f.Bytes)
		case wire.Varint(3):
			c.watch = f.Number != 0
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decodeRequest adds a request to the batch.
func (c *call) decodeRequest(b []byte) (err error) {
	r := remote.Request{}
	headers, cookies, descriptors := len(c.headers), len(c.cookies), len(c.descriptors)
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(5):
			c.headers, err = addEntry(c.headers, headers, remote.MaxHeaders, f.Bytes)
		case wire.Bytes(6):
			c.cookies, err = addEntry(c.cookies, cookies, remote.MaxCookies, f.Bytes)
		case wire.Bytes(9):
			c.descriptors, err = addEntry(c.descriptors, descriptors, remote.MaxDescriptors, f.Bytes)
		case wire.Varint(10):
			r.Cost = int64(f.Number)
		default:
			err = decodeText(&r, &f)
		}
		if err != nil {
			return err
		}
	}
	r.Headers, r.Cookies, r.Descriptors = c.headers[headers:], c.cookies[cookies:], c.descriptors[descriptors:]
	c.batch.Add(&r)
	return nil
}

// decodeText reads a text of a request. It ignores unknown fields.
func decodeText(r *remote.Request, f *wire.Field) (err error) {
	var into *string
	switch f.ID {
	case wire.Bytes(1):
		into = &r.Method
	case wire.Bytes(2):
		into = &r.Host
	case wire.Bytes(3):
		into = &r.Path
	case wire.Bytes(4):
		into = &r.IP
	case wire.Bytes(7):
		into = &r.Subject
	case wire.Bytes(8):
		into = &r.Domain
	default:
		return nil
	}
	*into, err = wire.Text(f.Bytes)
	return err
}

// addEntry adds an entry of the request whose entries begin at from. It keeps one entry more than the
// most, so that the request is refused for it, and no further ones.
func addEntry(all []headgate.DescriptorEntry, from, most int, b []byte) (_ []headgate.DescriptorEntry, err error) {
	var e headgate.DescriptorEntry
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		if n < 0 {
			return all, errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			e.Name, err = wire.Text(f.Bytes)
		case wire.Bytes(2):
			e.Value, err = wire.Text(f.Bytes)
		}
		if err != nil {
			return all, err
		}
	}
	if len(all)-from > most {
		return all, nil
	}
	return append(all, e), nil
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
			message = f.Number
		case wire.Varint(2):
			c.returns = append(c.returns, place{index: uint32(f.Number)})
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
