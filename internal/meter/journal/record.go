package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// Bounds of the texts of a record, in bytes. Append shortens longer ones.
const (
	maxCustomer = 256
	maxQuota    = 128
	maxInstance = 128
	maxEpoch    = 64
)

// ID identifies a record. No two records of any journal share one: the epoch of a journal begins when it is opened, and has
// a random part.
type ID struct {
	Instance, Epoch string
	Sequence        uint64
}

// String gives the id as outputs write it: instance/epoch/sequence.
func (id ID) String() string { return fmt.Sprintf("%s/%s/%d", id.Instance, id.Epoch, id.Sequence) }

// Record says what a customer used of a quota in one minute, as a difference to earlier records of that minute.
type Record struct {
	ID

	// Time is when the record was made, in milliseconds since the Unix epoch. Minute is the minute of the decisions, in
	// minutes since the Unix epoch.
	Time, Minute int64
	// Customer is the name of the customer. Others says that the record is the sum of customers beyond the bound of a minute.
	Customer string
	Others   bool
	Quota    string
	// Shadow and Correction are those of headgate.Usage.
	Shadow, Correction bool
	// Admitted, Metered and Refused are in units. Those of corrections may be negative.
	Admitted, Metered, Refused int64
}

// Start gives the start of the minute.
func (r *Record) Start() time.Time {
	return time.Unix(r.Minute*int64(time.Minute/time.Second), 0).UTC()
}

const (
	flagShadow = 1 << iota
	flagCorrection
	flagOthers
)

// frameHead is the length of a payload and its CRC32C.
const frameHead = 8

// maxPayload bounds a payload: the texts and at most 9 numbers of 10 bytes.
const maxPayload = maxCustomer + maxQuota + 128

// errTorn says that the bytes are no complete frame.
var errTorn = errors.New("the record is incomplete or changed")

// appendFrame appends a frame whose payload is what fill appends.
func appendFrame(dst []byte, fill func([]byte) []byte) []byte {
	from := len(dst)
	dst = fill(append(dst, make([]byte, frameHead)...))
	payload := dst[from+frameHead:]
	binary.LittleEndian.PutUint32(dst[from:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(dst[from+4:], crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)))
	return dst
}

// frame gives the payload of the first frame of text, and the length of the frame. The error is errTorn.
func frame(text []byte) (payload []byte, n int, err error) {
	if len(text) < frameHead {
		return nil, 0, errTorn
	}
	length := binary.LittleEndian.Uint32(text)
	if length == 0 || length > maxPayload || int(length) > len(text)-frameHead {
		return nil, 0, errTorn
	}
	payload = text[frameHead : frameHead+length]
	if crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(text[4:]) {
		return nil, 0, errTorn
	}
	return payload, frameHead + int(length), nil
}

// appendRecord appends the frame of a record. The ID is that of the segment and the place in it.
func appendRecord(dst []byte, r *Record) []byte {
	return appendFrame(dst, func(b []byte) []byte {
		var flags byte
		for i, set := range [...]bool{r.Shadow, r.Correction, r.Others} {
			if set {
				flags |= 1 << i
			}
		}
		b = append(b, flags)
		for _, n := range [...]int64{r.Time, r.Minute, r.Admitted, r.Metered, r.Refused} {
			b = binary.AppendVarint(b, n)
		}
		b = appendText(b, r.Customer, maxCustomer)
		return appendText(b, r.Quota, maxQuota)
	})
}

func appendText(b []byte, text string, most int) []byte {
	text = text[:min(len(text), most)]
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// readRecord reads the payload of a record.
func readRecord(payload []byte, r *Record) error {
	if len(payload) == 0 || payload[0] > flagShadow|flagCorrection|flagOthers {
		return errTorn
	}
	flags, in := payload[0], fields{rest: payload[1:]}
	r.Shadow, r.Correction, r.Others = flags&flagShadow != 0, flags&flagCorrection != 0, flags&flagOthers != 0
	for _, n := range [...]*int64{&r.Time, &r.Minute, &r.Admitted, &r.Metered, &r.Refused} {
		*n = in.number()
	}
	r.Customer, r.Quota = in.text(maxCustomer), in.text(maxQuota)
	return in.end()
}

// fields reads the fields of a payload. After a fault, all fields are zero.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) number() int64 {
	n, size := binary.Varint(f.rest)
	if size <= 0 {
		f.bad, f.rest = true, nil
		return 0
	}
	f.rest = f.rest[size:]
	return n
}

func (f *fields) text(most int) string {
	n, size := binary.Uvarint(f.rest)
	if size <= 0 || n > uint64(most) || n > uint64(len(f.rest)-size) {
		f.bad, f.rest = true, nil
		return ""
	}
	text := string(f.rest[size : size+int(n)])
	f.rest = f.rest[size+int(n):]
	return text
}

func (f *fields) end() error {
	if f.bad || len(f.rest) > 0 {
		return errTorn
	}
	return nil
}
