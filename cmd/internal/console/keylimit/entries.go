package keylimit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// most bounds the limits of an instance, and those of a source.
const most = 1000

// limited are the limits of one value.
type limited struct {
	rule, value  string
	limits       string // with commas; "" is unlimited
	burst        int64
	since, until time.Time
	by, reason   string
	everywhere   bool
}

// Ends implements overlay.Entry.
func (l limited) Ends() time.Time { return l.until }

// nameOf is the name of the entry of a value. Neither the name of a rule nor a value has a line break.
func nameOf(ruleName, value string) string { return ruleName + "\n" + value }

func (l limited) config() config.KeyLimit {
	k := config.KeyLimit{Rule: l.rule, Value: l.value, Unlimited: l.limits == ""}
	if !k.Unlimited {
		k.NewLimits = config.NewLimits{Limits: strings.Split(l.limits, ","), Burst: l.burst}
	}
	return k
}

// texts gives the limits as lists show them.
func (l limited) texts() []string {
	if l.limits == "" {
		return []string{"unlimited"}
	}
	texts := strings.Split(l.limits, ",")
	for i := range texts {
		if l.burst > 0 {
			texts[i] += " burst " + strconv.FormatInt(l.burst, 10)
		}
	}
	return texts
}

// over gives the limits of an instance on top of those of all.
func over(here, fleet map[string]limited) map[string]limited {
	next := maps.Clone(fleet)
	if next == nil {
		next = map[string]limited{}
	}
	maps.Copy(next, here)
	return next
}

// text says for the log how many limits of which rules there are: values may be personal.
func text(all map[string]limited) string {
	byRule := map[string]int{}
	for _, one := range all {
		byRule[one.rule]++
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(byRule)) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, byRule[name]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// list gives the limits by rule and value. plain says that the caller may see values.
func list(all map[string]limited, plain bool) []admin.KeyLimited {
	shown := make([]admin.KeyLimited, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one := all[name]
		d := admin.KeyLimited{
			Rule: one.rule, Limits: one.texts(), Since: one.since.UTC(), Until: one.until.UTC(), By: one.by, Reason: one.reason,
			Everywhere: one.everywhere,
		}
		if plain {
			d.Value = one.value
		}
		shown = append(shown, d)
	}
	return shown
}

// objectKey names the object of a source with the limits of all instances.
func objectKey() source.Key { return source.Key{Kind: source.Mode, Name: "limits"} }

// entry is one element of the text of the object.
type entry struct {
	Rule      string    `json:"rule"`
	Value     string    `json:"value"`
	Limits    []string  `json:"limits,omitempty"`
	Burst     int64     `json:"burst,omitempty"`
	Unlimited bool      `json:"unlimited,omitempty"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// encode writes limits as the text of the object; "" for none.
func encode(all map[string]limited) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one := all[name]
		k := one.config()
		entries = append(entries, entry{
			Rule: one.rule, Value: one.value, Limits: k.Limits, Burst: k.Burst, Unlimited: k.Unlimited, Since: one.since.UTC(),
			Until: one.until.UTC(), By: one.by, Reason: one.reason,
		})
	}
	written, err := json.Marshal(entries)
	if err == nil && len(written) > source.MaxText {
		err = fmt.Errorf("the limits of single keys take %d bytes, and a source keeps %d: end some, or write them as overrides of the rule",
			len(written), source.MaxText)
	}
	return string(written), err
}

// decode reads the text of the object.
func decode(text string) (map[string]limited, error) {
	all := map[string]limited{}
	if text == "" {
		return all, nil
	}
	var entries []entry
	body := json.NewDecoder(bytes.NewReader([]byte(text)))
	body.DisallowUnknownFields()
	err := body.Decode(&entries)
	if err == nil {
		if _, more := body.Token(); !errors.Is(more, io.EOF) || len(entries) > most {
			err = errors.New("it has more than one list of 1,000 limits")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not valid: %w: delete the object in the source, and set the limits again", objectKey(), err)
	}
	for i := range entries {
		e := &entries[i]
		if e.Rule == "" || e.Value == "" || e.Until.IsZero() || e.Unlimited == (len(e.Limits) > 0) {
			return nil, fmt.Errorf("%s has an entry without rule, value, limits or end: delete the object in the source, and set the "+
				"limits again", objectKey())
		}
		all[nameOf(e.Rule, e.Value)] = limited{
			rule: e.Rule, value: e.Value, limits: strings.Join(e.Limits, ","), burst: e.Burst, since: e.Since, until: e.Until, by: e.By,
			reason: e.Reason, everywhere: true,
		}
	}
	return all, nil
}
