package usage_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"

	"github.com/headgate/headgate/internal/usage"
)

// read is what a body states: the twin of a Scan.
type read struct {
	numbers map[int]float64
	texts   map[int]string
	done    bool
}

// documents reads JSON documents behind one another with encoding/json, and passes those of an array at the top one by one.
func (r *read) documents(fields []usage.Field, text []byte) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); err != nil {
			return // The end, or what is not JSON.
		}
		if all, ok := v.([]any); ok {
			for _, one := range all {
				r.document(fields, one)
			}
			continue
		}
		r.document(fields, v)
	}
}

func (r *read) document(fields []usage.Field, v any) {
	for i, f := range fields {
		for _, path := range f.Paths {
			r.note(i, &f, at(v, strings.Split(path, ".")))
		}
	}
}

// at returns the value at a path; nil for none.
func at(v any, path []string) any {
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[name]
	}
	return v
}

func (r *read) note(i int, f *usage.Field, v any) {
	switch v := v.(type) {
	case json.Number:
		if f.Text {
			r.texts[i] = v.String()
			return
		}
		n, err := v.Float64()
		if err != nil || n < 0 || math.Signbit(n) || n > usage.MaxNumber {
			return
		}
		before, found := r.numbers[i]
		switch {
		case !found || f.Merge == usage.Last:
		case f.Merge == usage.Sum:
			n = min(n+before, usage.MaxNumber)
		default:
			n = max(n, before)
		}
		r.numbers[i] = n
	case string:
		if f.Text {
			r.texts[i] = v
		}
	case bool:
		if f.Text {
			r.texts[i] = map[bool]string{true: "true", false: "false"}[v]
		}
	}
}

// twin reads a whole body in the obvious way.
func twin(fields []usage.Field, form usage.Form, body []byte) *read {
	r := &read{numbers: map[int]float64{}, texts: map[int]string{}}
	switch form {
	case usage.Events:
		text := strings.TrimPrefix(string(body), "\ufeff")
		text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
		var data []string
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, ":")
			switch {
			case line == "" && len(data) > 0:
				whole := strings.Join(data, "\n")
				r.done = r.done || whole == "[DONE]"
				r.documents(fields, []byte(whole))
				data = nil
			case name == "data":
				data = append(data, strings.TrimPrefix(value, " "))
			}
		}
	case usage.Frames:
		for len(body) >= 16 {
			total, headers := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
			payload := body[12+headers : total-4]
			var inner struct {
				Bytes []byte `json:"bytes"`
			}
			if bytes.HasPrefix(payload, []byte(`{"bytes":"`)) && json.Unmarshal(payload, &inner) == nil {
				payload = inner.Bytes
			}
			r.documents(fields, payload)
			body = body[total:]
		}
	default:
		r.documents(fields, body)
	}
	return r
}

// frame makes a message with one header.
func frame(payload []byte) []byte {
	const header = "\x0b:event-type\x07\x00\x08metadata"
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(header)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(header)))
	b = append(b, "crc_"+header...)
	b = append(b, payload...)
	return append(b, "crc_"...)
}

// wrap makes the payload of InvokeModelWithResponseStream.
func wrap(payload []byte) []byte {
	return []byte(`{"bytes":"` + base64.StdEncoding.EncodeToString(payload) + `","p":"abcd"}`)
}
