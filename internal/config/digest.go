package config

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/source"
)

// Digester makes digests of configurations. It keeps the digest of the last rules, because customers of a source change often and rules
// seldom. It is not safe for concurrent use. The zero Digester is ready.
type Digester struct {
	rules *guard.Rule
	n     int
	sum   [sha256.Size]byte
}

// Digest gives 16 digits that are equal for configurations that decide requests alike: with the same rules, plans, customers, exemptions,
// domains, fair share, throttle, identity and store, in any file. Addresses of listeners, names of instances, logs, memory and timeouts of
// connections do not matter. Modes of the run time are no part of a configuration.
func (d *Digester) Digest(c *Config) string {
	var first *guard.Rule
	if len(c.Rules) > 0 {
		first = &c.Rules[0]
	}
	if first != d.rules || len(c.Rules) != d.n || first == nil {
		d.rules, d.n, d.sum = first, len(c.Rules), digest(c.Rules)
	}
	sum := digest(
		d.sum[:], c.Store, c.Shared, c.Prefetch, c.Fallback, c.LocalShare, c.Namespace, c.OnFull, c.Independent, c.RetryAfterMax,
		c.XShouldRetry, c.Identity, c.Folds, c.EnvoyCalendarMonths, c.Exempt, c.Plans, c.DefaultPlan, c.Customers, c.Domains, c.FairShare,
		c.Throttle, c.Mode, c.sourceKnown, c.customerSum,
	)
	return hex.EncodeToString(sum[:8])
}

func digest(parts ...any) (sum [sha256.Size]byte) {
	h := sha256.New()
	buffered := bufio.NewWriter(h)
	for _, part := range parts {
		add(buffered, reflect.ValueOf(part), 0)
	}
	_ = buffered.Flush() // A hash does not fail.
	h.Sum(sum[:0])
	return sum
}

// maxDigestDepth ends the walk through values that point at themselves.
const maxDigestDepth = 40

// add adds a value. Each value begins with its kind and its length, so that different values have different bytes.
func add(h io.Writer, v reflect.Value, depth int) {
	if !v.IsValid() || depth > maxDigestDepth {
		_, _ = h.Write([]byte{0})
		return
	}
	_, _ = h.Write([]byte{byte(v.Kind())})
	switch v.Kind() {
	case reflect.String:
		addText(h, v.String())
	case reflect.Bool:
		addNumber(h, map[bool]uint64{true: 1}[v.Bool()])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		addNumber(h, uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		addNumber(h, v.Uint())
	case reflect.Float32, reflect.Float64:
		addNumber(h, uint64(v.Float()*(1<<20)))
	case reflect.Slice, reflect.Array:
		addNumber(h, uint64(v.Len()))
		for i := range v.Len() {
			add(h, v.Index(i), depth+1)
		}
	case reflect.Map:
		addMap(h, v, depth)
	case reflect.Pointer, reflect.Interface:
		add(h, v.Elem(), depth+1)
	case reflect.Struct:
		addStruct(h, v, depth)
	default: // Functions and channels are no settings.
	}
}

func addText(h io.Writer, text string) {
	addNumber(h, uint64(len(text)))
	_, _ = h.Write([]byte(text))
}

func addNumber(h io.Writer, n uint64) {
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], n)
	_, _ = h.Write(bytes[:])
}

// addMap adds the entries in the order of their digests.
func addMap(h io.Writer, v reflect.Value, depth int) {
	sums := make([]string, 0, v.Len())
	for entries := v.MapRange(); entries.Next(); {
		one := sha256.New()
		add(one, entries.Key(), depth+1)
		add(one, entries.Value(), depth+1)
		sums = append(sums, string(one.Sum(nil)))
	}
	slices.Sort(sums)
	addNumber(h, uint64(len(sums)))
	for _, sum := range sums {
		_, _ = h.Write([]byte(sum))
	}
}

// addStruct adds the fields. Two types keep what the process knows beside their text.
func addStruct(h io.Writer, v reflect.Value, depth int) {
	switch v.Type() {
	case reflect.TypeFor[time.Location]():
		addText(h, v.FieldByName("name").String())
	case reflect.TypeFor[regexp.Regexp]():
		addText(h, v.FieldByName("expr").String())
	default:
		for i := range v.NumField() {
			add(h, v.Field(i), depth+1)
		}
	}
}

// customerSum is the sum of the digests of the customers of a source. A change of one of a million customers costs two digests.
type customerSum uint64

func (s *customerSum) change(was, is *customerEntry) {
	if was != nil {
		*s -= digestOf(&was.Object)
	}
	if is != nil {
		*s += digestOf(&is.Object)
	}
}

func digestOf(o *source.Object) customerSum {
	h := sha256.New()
	addText(h, o.Name)
	addText(h, o.Text)
	return customerSum(binary.LittleEndian.Uint64(h.Sum(nil)))
}
