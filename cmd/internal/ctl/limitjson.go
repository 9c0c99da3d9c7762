package ctl

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace/etcd"
)

// limitDocument is the JSON of a provider. The order of the fields is stable, and new fields
// are added at the end.
type limitDocument struct {
	Provider string           `json:"provider"`
	Limit    *limitValue      `json:"limit"` // null when no limit is set
	Plan     *planDocument    `json:"plan"`  // null when no plan exists yet
	Brake    *brakeDocument   `json:"brake"` // null when no brake is active
	Members  []memberDocument `json:"members"`
	Faults   []string         `json:"faults"` // invalid values in etcd
}

type limitValue struct {
	Count    int64  `json:"count"`
	Per      string `json:"per"`
	Balance  string `json:"balance"`
	Revision int64  `json:"revision"`
	// Valid is false when the stored value is not a valid limit. The other fields are then empty.
	Valid bool `json:"valid"`
}

type planDocument struct {
	Limit     int64     `json:"limit"`
	Per       string    `json:"per"`
	Instances int       `json:"instances"`
	From      time.Time `json:"from"`
	Revision  int64     `json:"revision"`
}

type memberDocument struct {
	ID     string    `json:"id"`
	Index  int       `json:"index"` // -1 while the instance is not in the plan
	Demand int64     `json:"demand"`
	Seen   time.Time `json:"seen"`
}

type brakeDocument struct {
	Until   time.Time `json:"until"`
	Percent int       `json:"percent"`
	Reason  string    `json:"reason"`
	By      string    `json:"by"`
}

// limitsDocument has all providers, sorted by name.
type limitsDocument struct {
	Limits []limitDocument `json:"limits"`
}

// changeDocument is the JSON of a change.
type changeDocument struct {
	Provider string        `json:"provider"`
	Before   *limitValue   `json:"before"` // null when no limit was set before
	After    *limitValue   `json:"after"`  // null after a deletion
	Changed  bool          `json:"changed"`
	InForce  bool          `json:"in_force"`
	Plan     *planDocument `json:"plan"` // the plan that divides the limit; null when the command saw no plan
}

func documentOf(e *etcd.Entry) limitDocument {
	d := limitDocument{
		Provider: e.Provider, Limit: valueOf(e), Plan: planDocumentOf(e.Plan), Members: make([]memberDocument, 0, len(e.Members)),
		Faults: append([]string{}, e.Faults...),
	}
	for _, m := range byIndex(e.Members) {
		d.Members = append(d.Members, memberDocument{m.ID, m.Index, m.Demand, m.Seen.UTC()})
	}
	if b := e.Brake; b != nil {
		d.Brake = &brakeDocument{b.Until.UTC(), b.Percent, b.Reason, b.By}
	}
	return d
}

func valueOf(e *etcd.Entry) *limitValue {
	switch {
	case e.Revision == 0:
		return nil
	case !valid(e):
		return &limitValue{Revision: e.Revision}
	}
	per := headgate.Limit{Per: e.Limit.Per}.Period()
	return &limitValue{e.Limit.Count, per, string(balanceOf(e.Limit)), e.Revision, true}
}

func planDocumentOf(p *etcd.PlanInfo) *planDocument {
	if p == nil {
		return nil
	}
	return &planDocument{p.Limit, headgate.Limit{Per: p.Per}.Period(), p.Instances, p.From.UTC(), p.Revision}
}

// writeDocument writes JSON as one line of ASCII. Texts of instances may have characters that
// a terminal interprets as commands.
func writeDocument(out io.Writer, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	var line strings.Builder
	for _, r := range string(text) {
		switch {
		case r < 0x7f:
			line.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&line, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&line, `\u%04x\u%04x`, high, low)
		}
	}
	_, err = fmt.Fprintln(out, line.String())
	return err
}
