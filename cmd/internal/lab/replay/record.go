package replay

import (
	"encoding/binary"
	"net/netip"
	"time"
	"unsafe"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
)

// record is a line while it waits for its turn: the values that rules and the report read, and no others. Its texts are those of the
// payload, and valid as long as it.
type record struct {
	File     int
	Number   int64
	Duration time.Duration // -1 is unknown
	Status   int
	Cost     int64 // -1 is unknown

	Client, UserIP                    netip.Addr
	Method, Host, Path, Query         string
	Region, Verdict, Reason, RuleName string
	Parts                             []part
}

// part is the value of one of the parts that rules read.
type part struct {
	text string
	form logs.Form
}

// appendRecord packs a line. Numbers are varints, and texts have their lengths.
func appendRecord(b []byte, l *logs.Line) []byte {
	b = binary.AppendUvarint(b, uint64(l.File))
	b = binary.AppendVarint(b, l.Number)
	b = binary.AppendVarint(b, int64(l.Duration))
	b = binary.AppendVarint(b, int64(l.Status))
	b = binary.AppendVarint(b, l.Cost)
	b = appendAddress(b, l.Client)
	b = appendAddress(b, l.UserIP)
	for _, text := range [...][]byte{l.Method, l.Host, l.Path, l.Query, l.Region, l.Verdict, l.Reason, l.Rule} {
		b = appendText(b, text)
	}
	for i := range l.Parts {
		b = append(b, byte(l.Parts[i].Form))
		b = appendText(b, l.Parts[i].Text)
	}
	return b
}

func appendText(b, text []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// appendAddress packs an address in 1, 5 or 17 bytes.
func appendAddress(b, text []byte) []byte {
	if len(text) == 0 {
		return append(b, 0)
	}
	at, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(text), len(text))) //nolint:gosec // A copy would allocate for each line.
	switch {
	case err != nil:
		return append(b, 0)
	case at.Is4() || at.Is4In6():
		v4 := at.As4()
		return append(append(b, 4), v4[:]...)
	default:
		v6 := at.As16()
		return append(append(b, 16), v6[:]...)
	}
}

// unpacker reads what appendRecord wrote.
type unpacker struct{ rest []byte }

func (u *unpacker) unsigned() uint64 {
	n, size := binary.Uvarint(u.rest)
	u.rest = u.rest[max(size, 0):]
	return n
}

func (u *unpacker) signed() int64 {
	n, size := binary.Varint(u.rest)
	u.rest = u.rest[max(size, 0):]
	return n
}

// text returns a text without a copy.
func (u *unpacker) text() string {
	n := u.unsigned()
	text := u.rest[:n]
	u.rest = u.rest[n:]
	return unsafe.String(unsafe.SliceData(text), len(text)) //nolint:gosec // The payload does not change while the record is used.
}

func (u *unpacker) address() netip.Addr {
	n := u.rest[0]
	text := u.rest[1 : 1+n]
	u.rest = u.rest[1+n:]
	at, _ := netip.AddrFromSlice(text) // No address gives the zero Addr.
	return at
}

// unpack reads a payload.
func (r *record) unpack(payload []byte) {
	u := unpacker{payload}
	r.File, r.Number = int(u.unsigned()), u.signed()
	r.Duration, r.Status, r.Cost = time.Duration(u.signed()), int(u.signed()), u.signed()
	r.Client, r.UserIP = u.address(), u.address()
	r.Method, r.Host, r.Path, r.Query = u.text(), u.text(), u.text(), u.text()
	r.Region, r.Verdict, r.Reason, r.RuleName = u.text(), u.text(), u.text(), u.text()
	r.Parts = r.Parts[:0]
	for len(u.rest) > 0 {
		form := logs.Form(u.rest[0])
		u.rest = u.rest[1:]
		r.Parts = append(r.Parts, part{u.text(), form})
	}
}
