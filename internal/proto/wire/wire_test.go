package wire

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// FuzzReadField compares the fast path with the reader of all fields, and with protowire.
func FuzzReadField(f *testing.F) {
	f.Add([]byte{0x0a, 0x01, 'a'})
	f.Add([]byte{0x08, 0x7f})
	f.Add([]byte{0x08, 0x80, 0x01})
	f.Add([]byte{0x0d, 1, 2, 3, 4})
	f.Add([]byte{0x00, 0x00})
	f.Add([]byte{0x0a, 0x05, 'a'})
	f.Fuzz(func(t *testing.T, b []byte) {
		field, n := ReadField(b)
		same, m := readLongField(b)
		if (n < 0) != (m < 0) || n >= 0 && (n != m || field.ID != same.ID || field.Number() != same.Number() || !bytes.Equal(field.Bytes, same.Bytes)) {
			t.Fatalf("%x: got %+v, %d, want %+v, %d", b, field, n, same, m)
		}
		number, _, length := protowire.ConsumeField(b)
		if number > protowire.MaxValidNumber {
			length = -1 // protowire leaves this check to its callers.
		}
		if (n < 0) != (length < 0) || n >= 0 && n != length {
			t.Fatalf("%x: got the length %d, protowire %d", b, n, length)
		}
	})
}

// TestMessages compares messages of many lengths with those of protowire.
func TestMessages(t *testing.T) {
	for _, length := range []int{0, 1, 126, 127, 128, 129, 300, 16_383, 16_384, 20_000} {
		content := bytes.Repeat([]byte{'x'}, length)
		want := protowire.AppendBytes(protowire.AppendTag([]byte("before"), 3, protowire.BytesType), content)
		got, from := BeginMessage([]byte("before"), 3)
		if got = EndMessage(append(got, content...), from); !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %.20x, want %.20x", length, got, want)
		}
	}
}

func TestText(t *testing.T) {
	if got, err := Text([]byte("süß")); got != "süß" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := Text([]byte{0xff}); !errors.Is(err, ErrUTF8) {
		t.Errorf("got %v", err)
	}
}

// TestZeros: values that a reader assumes anyway are left out.
func TestZeros(t *testing.T) {
	if got := AppendText(AppendNumber(nil, 1, 0), 2, ""); len(got) != 0 {
		t.Errorf("got %x", got)
	}
	if got := AppendText(AppendNumber(nil, 1, 300), 2, "a"); !bytes.Equal(got, []byte{0x08, 0xac, 0x02, 0x12, 1, 'a'}) {
		t.Errorf("got %x", got)
	}
}
