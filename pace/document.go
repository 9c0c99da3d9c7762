package pace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
)

// maxDocument bounds the bytes of a document. A document with every field has fewer than
// 200 bytes.
const maxDocument = 16 << 10

// ParseDocument parses a provider's limit from a file or a configuration server:
//
//	{"limit": "50000/s", "instances": 96}
//	{"limit": 500, "per": "2s", "instances": 8, "index": 3}
//
// limit is units and a period, as in "500/2s", "100/m" and "10000/1d". It may also be
// units alone, with the period in per, which defaults to 1s. A limit of 0 closes the
// provider. instances is the number of instances that share the limit.
//
// The argument index is the index of this instance, from 0. It is -1 if the document has
// the index. If both have an index, the two must be equal: otherwise a document meant for
// one instance would give all instances the same part.
//
// ParseDocument rejects unknown and repeated fields, fractions, quoted numbers, data after
// the object, and documents above 16 KiB. It also rejects every truncated document. The
// error wraps [schedule.ErrPlan] and says what to write instead.
func ParseDocument(data []byte, index int) (Plan, error) {
	if len(data) > maxDocument {
		return Plan{}, wrong("more than %d bytes: write one JSON object, like %s", maxDocument, documentLike)
	}
	d, err := readDocument(data)
	if err != nil {
		return Plan{}, err
	}
	limit, per, err := d.rate()
	if err != nil {
		return Plan{}, err
	}
	instances, err := whole("instances", d.instances, 1, schedule.MaxInstances)
	if err != nil {
		return Plan{}, err
	}
	if index, err = d.place(index); err != nil {
		return Plan{}, err
	}
	return schedule.Even(limit, per, int(instances), index)
}

const documentLike = `{"limit": "500/s", "instances": 8}`

// document has the values of a document's fields: a string, a json.Number, or nil for a
// missing field.
type document struct{ limit, per, instances, index any }

func (d *document) field(name string) *any {
	switch name {
	case "limit":
		return &d.limit
	case "per":
		return &d.per
	case "instances":
		return &d.instances
	case "index":
		return &d.index
	}
	return nil
}

// readDocument reads tokens, because encoding/json silently takes the last of two equal
// fields and ignores the case of names.
func readDocument(data []byte) (document, error) {
	var d document
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	start, err := in.Token()
	if err != nil {
		return d, malformed(err)
	}
	if start != json.Delim('{') {
		return d, wrong("it begins with %s: write one JSON object, like %s", abridged(fmt.Sprint(start)), documentLike)
	}
	for in.More() {
		if err := d.readField(in); err != nil {
			return d, err
		}
	}
	if _, err := in.Token(); err != nil {
		return d, malformed(err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return d, wrong("something stands behind the object: write one object and no more")
	}
	return d, nil
}

func (d *document) readField(in *json.Decoder) error {
	key, err := in.Token()
	if err != nil {
		return malformed(err)
	}
	name, _ := key.(string)
	field := d.field(name)
	if field == nil {
		return wrong("unknown field %s: there are limit, per, instances and index", abridged(name))
	}
	if *field != nil {
		return wrong("%s stands twice: write it once", name)
	}
	value, err := in.Token()
	if err != nil {
		return malformed(err)
	}
	switch value.(type) {
	case string, json.Number:
		*field = value
		return nil
	}
	return wrong("%s is neither a number nor a text: write it as in %s, or leave it out", name, documentLike)
}

func (d *document) rate() (limit int64, per time.Duration, err error) {
	if text, ok := d.limit.(string); ok {
		if d.per != nil {
			return 0, 0, wrong("limit %s has its period in it: leave per out", abridged(text))
		}
		return parseRate(text)
	}
	if limit, err = whole("limit", d.limit, 0, schedule.MaxLimit); err != nil {
		return 0, 0, err
	}
	switch text, ok := d.per.(string); {
	case d.per == nil:
		return limit, time.Second, nil
	case !ok:
		return 0, 0, wrong(`per is a number: write it with its unit, like "1s"`)
	default:
		per, err = parsePeriod(text)
		return limit, per, err
	}
}

func (d *document) place(index int) (int, error) {
	if d.index == nil {
		if index < 0 {
			return 0, wrong(`index is missing: write which of the instances this one is, from 0, like "index": 0, ` +
				`or give it in this instance's configuration`)
		}
		return index, nil
	}
	n, err := whole("index", d.index, 0, schedule.MaxInstances-1)
	if err != nil {
		return 0, err
	}
	if index >= 0 && int(n) != index {
		return 0, wrong("index %d, but %d in this instance's configuration: leave it out of a document that instances share", n, index)
	}
	return int(n), nil
}

func parseRate(text string) (limit int64, per time.Duration, err error) {
	count, period, ok := strings.Cut(text, "/")
	units, err := strconv.ParseUint(count, 10, 63)
	if !ok || err != nil || units > schedule.MaxLimit {
		return 0, 0, wrong(`limit %s: write units from 0 to %d and their period, like "500/s", "500/2s" or "100/m"`,
			abridged(text), int64(schedule.MaxLimit))
	}
	per, err = parsePeriod(period)
	return int64(units), per, err
}

// parsePeriod parses a Go duration, a number of days, or a unit alone.
func parsePeriod(text string) (time.Duration, error) {
	number := text
	if text == "ms" || len(text) == 1 {
		number = "1" + text
	}
	if days, ok := strings.CutSuffix(number, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	per, err := time.ParseDuration(number)
	if err != nil || strings.HasPrefix(number, "+") {
		return 0, wrong(`period %s: write it like "1s", "250ms", "1m30s", "2h" or "1d"`, abridged(text))
	}
	return per, nil
}

func whole(name string, value any, least, most int64) (int64, error) {
	switch v := value.(type) {
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		if err != nil || n < least || n > most {
			return 0, wrong("%s %s: write a whole number from %d to %d, in digits", name, abridged(v.String()), least, most)
		}
		return n, nil
	case string:
		return 0, wrong("%s %s is a text: write the number without quotes", name, abridged(v))
	}
	return 0, wrong("%s is missing: write it as in %s", name, documentLike)
}

func malformed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return wrong("it ends too soon: write one whole JSON object, like %s", documentLike)
	}
	return wrong("no JSON: %w: write one object, like %s", err, documentLike)
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{schedule.ErrPlan}, args...)...)
}

// abridged quotes a value from outside and truncates it for an error.
func abridged(text string) string {
	const most = 40
	if len(text) > most {
		return strconv.Quote(text[:most]) + "…"
	}
	return strconv.Quote(text)
}
