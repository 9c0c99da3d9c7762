package throttler

import (
	"fmt"
	"strconv"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/throttle"
	"github.com/headgate/headgate/rule"
)

// Classified gives requests that match a class, unless a trusted peer has stated one.
type Classified struct {
	Match rule.Match
	Class Class
}

// CheckClasses finds the faults of Config.Classes. It joins a *rule.RuleError for each, with the position
// of the entry.
func CheckClasses(all []Classified, folds rule.Folds) error {
	_, err := indexClasses(all, folds)
	return err
}

// indexClasses makes the index of the entries.
func indexClasses(all []Classified, folds rule.Folds) (*rule.Index, error) {
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // Without entries, no request is looked up.
	}
	key, err := rule.ParsePart("all")
	if err != nil {
		return nil, err //nolint:wrapcheck // The callers wrap it.
	}
	rules := make([]rule.Rule, len(all))
	for i := range all {
		if all[i].Class > throttle.Sheddable {
			return nil, fmt.Errorf("class %d is not known: use the constants", all[i].Class)
		}
		rules[i] = rule.Rule{Name: "class-" + strconv.Itoa(i), Match: all[i].Match, Key: []rule.Part{key}}
		rules[i].Match = folds.Match(rules[i].Match)
	}
	return rule.NewIndex(rules) //nolint:wrapcheck // The callers wrap it.
}

// classOf returns the class of a request: that which a trusted peer states, or that of the first entry
// that matches, or Config.Class. found is memory for the positions of the entries.
func (s *Stage) classOf(req *headgate.Request, trusted bool, found *[]int) Class {
	if text, ok := stated(req, FieldCriticality, trusted); ok {
		if class, err := throttle.ParseClass(text); err == nil {
			return class
		}
	}
	if s.classes == nil {
		return s.config.Class
	}
	sent := req.Path
	req.Path = s.config.Folds.Path(sent)
	*found = s.classes.Match(req, (*found)[:0])
	req.Path = sent
	if len(*found) == 0 {
		return s.config.Class
	}
	return s.config.Classes[(*found)[0]].Class
}

// classNeeds returns the facts about a request that its class depends on.
func (s *Stage) classNeeds() (needs rule.Needs) {
	for i := range s.config.Classes {
		r := rule.Rule{Match: s.config.Classes[i].Match}
		needs |= r.Needs()
	}
	return needs | s.config.Folds.Needs()
}
