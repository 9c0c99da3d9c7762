package replay

import (
	"cmp"

	"github.com/headgate/headgate/cmd/internal/lab/replay/tally"
	"github.com/headgate/headgate/internal/sorting"
	"github.com/headgate/headgate/rule"
)

// maxChanged bounds the keys of a comparison that are listed.
const maxChanged = 20

// comparison compares the decisions of two configurations on each request. A decision that waits comes later than that of the other
// configuration, so each side notes its own by the number of the request.
type comparison struct {
	cells [2][2]int64 // by whether the first and the second refused
	// open has the first decision of requests whose second one is not known yet.
	open    map[int64]half
	changed *tally.Keys
	names   *rule.KeyNames
	text    []byte
}

// half is the decision of one side.
type half struct {
	side    int
	refused bool
	rule    string
	key     string
}

// newComparison follows the decisions of two trials.
func newComparison(first, second *trial) *comparison {
	c := &comparison{open: map[int64]half{}, changed: tally.NewKeys(tally.MaxBytes / 4), names: rule.PlainKeyNames()}
	for side, t := range [...]*trial{first, second} {
		before := t.then
		t.then = func(made *call) {
			if before != nil {
				before(made)
			}
			c.note(side, made)
		}
	}
	return c
}

// note takes the decision of one side.
func (c *comparison) note(side int, made *call) {
	h := half{side: side, refused: made.refused}
	if r := made.refuser; r != nil {
		h.rule = r.Rule.Name
		c.text = r.AppendKey(c.text[:0], c.names)
		h.key = string(c.text)
	}
	c.pair(made.number, h)
}

// pair waits for the decision of the other side.
func (c *comparison) pair(number int64, h half) {
	other, found := c.open[number]
	if !found {
		c.open[number] = h
		return
	}
	delete(c.open, number)
	first, second := other, h
	if first.side == 1 {
		first, second = second, first
	}
	c.cells[index(first.refused)][index(second.refused)]++
	if first.refused == second.refused {
		return
	}
	refuser, owner := first, 0
	if second.refused {
		refuser, owner = second, 1
	}
	c.text = append(append(append(c.text[:0], refuser.rule...), ' '), refuser.key...)
	if key := c.changed.Find(owner, c.text, 0); key != nil {
		key.Refused++
	}
}

// Comparison is the report of two configurations.
type Comparison struct {
	// Name is the file of the second configuration.
	Name string `json:"name"`
	// Both pass, only one of them refuses, or both refuse.
	BothPass    int64 `json:"both_pass"`
	OnlyFirst   int64 `json:"only_first_refuses"`
	OnlySecond  int64 `json:"only_second_refuses"`
	BothRefuse  int64 `json:"both_refuse"`
	ChangedKeys int64 `json:"changed_keys"`
	// Keys are those with the most changed requests.
	Keys []ChangedKey `json:"keys"`
	// LeftOut is what of the second configuration is not decided.
	LeftOut []string `json:"left_out,omitempty"`
}

// ChangedKey is a key that the two configurations treat differently.
type ChangedKey struct {
	// Key is the rule that refuses and the key.
	Key string `json:"key"`
	// Refuses says which configuration refuses: first or second.
	Refuses  string `json:"refuses"`
	Requests int64  `json:"requests"`
}

// report makes the report.
func (c *comparison) report(name string, leftOut []string) *Comparison {
	r := &Comparison{
		Name: name, BothPass: c.cells[0][0], OnlyFirst: c.cells[1][0], OnlySecond: c.cells[0][1], BothRefuse: c.cells[1][1],
		LeftOut: leftOut,
	}
	for side, word := range [...]string{"first", "second"} {
		for _, k := range c.changed.Of(side) {
			r.ChangedKeys += c.changed.Sample()
			r.Keys = append(r.Keys, ChangedKey{k.Text, word, k.Refused})
		}
	}
	sorting.StableFunc(r.Keys, func(a, b ChangedKey) int { return cmp.Compare(b.Requests, a.Requests) })
	r.Keys = r.Keys[:min(len(r.Keys), maxChanged)]
	return r
}
