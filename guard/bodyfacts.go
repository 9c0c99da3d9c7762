package guard

import (
	"slices"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/tokens"
	"github.com/headgate/headgate/rule"
)

// bodyRules finds out how much of a request's body the rules read, before the body is known.
type bodyRules struct {
	index  *rule.Index // of the rules that read bodies, without what they match of a body
	bounds []int64     // their MaxBody
}

// bodyCounts counts the bodies that were read before decisions.
type bodyCounts struct{ whole, part atomic.Uint64 }

// BodyFacts is the memory for what rules read of a body. It can be used again for another request.
type BodyFacts struct {
	body   headgate.Body
	fields tokens.Fields
}

// addBodies prepares the reading of bodies. matching has the rules of s.rules, as the index matches them.
func (s *set) addBodies(matching []rule.Rule) error {
	var settles []*tokens.Settle
	var reading []rule.Rule
	var bounds []int64
	for i := range s.rules {
		r := s.rules[i].Rule
		if r.SettleBody != nil {
			settles = append(settles, r.SettleBody)
		}
		if r.MaxBody > 0 {
			reading, bounds = append(reading, matching[i].BeforeBody()), append(bounds, r.MaxBody)
		}
	}
	if len(settles) == 0 && len(reading) == 0 {
		return nil
	}
	var err error
	if s.reader, err = tokens.NewReader(settles, s.bodyPaths()); err != nil {
		return err //nolint:wrapcheck // The error names the field.
	}
	for _, name := range s.reader.Headers() {
		if read := &s.stages.facts.Answer; !slices.Contains(*read, name) {
			*read = append(*read, name)
		}
	}
	if len(reading) == 0 {
		return nil
	}
	index, err := rule.NewIndex(reading)
	if err != nil {
		return err //nolint:wrapcheck // The error names the rule.
	}
	s.bodies = &bodyRules{index, bounds}
	return nil
}

// modelPath is where requests name their model. Prices are by model.
const modelPath = "model"

// bodyPaths lists the places that rules read in bodies, beside the model.
func (s *set) bodyPaths() []string {
	var all rule.Reads
	for i := range s.rules {
		all.AddRule(&s.rules[i].Rule.Rule)
	}
	return slices.DeleteFunc(all.Body, func(path string) bool { return path == modelPath })
}

// ReadsBodies reports whether a rule reads bodies of requests.
func (g *Guard) ReadsBodies() bool {
	s := g.now()
	return s != nil && s.bodies != nil
}

// BodyBound is Answer.BodyBound of the current rules, for a request without an Answer.
func (g *Guard) BodyBound(req *headgate.Request) int64 {
	var a Answer
	g.Begin(&a)
	return a.BodyBound(req)
}

// BodyBound returns how many bytes of the request's body to read before the decision, for the rules that Begin fixed: the highest
// Rule.MaxBody of those that may match. It is 0 if no rule reads the body. Then pass what was read to ReadBody.
func (a *Answer) BodyBound(req *headgate.Request) (most int64) {
	s := a.begun
	if s == nil || s.bodies == nil {
		return 0
	}
	sent := req.Path
	req.Path = s.config.Folds.Path(sent)
	if s.needs&rule.NeedClientIP != 0 {
		s.config.Identity.Resolve(req, rule.NeedClientIP)
	}
	if !s.exempt.Has(req) {
		a.matched = s.bodies.index.Match(req, a.matched[:0])
		for _, m := range a.matched {
			most = max(most, s.bodies.bounds[m])
		}
	}
	req.Path = sent
	return most
}

// ReadBody sets the Body of a request from the beginning of its body. part says that the body is longer. The Body uses the memory of f and
// of data.
func (a *Answer) ReadBody(req *headgate.Request, f *BodyFacts, data []byte, part bool) {
	s := a.begun
	if s == nil || s.reader == nil {
		return
	}
	s.reader.Request(&f.body, &f.fields, req.Path, data, part)
	f.body.Part = part
	req.Body = &f.body
	if counts := &s.guard.state.bodies; part {
		counts.part.Add(1)
	} else {
		counts.whole.Add(1)
	}
}

// BodiesRead gives the number of bodies that were read before decisions: to their end, and those that were longer than what may be read.
// The counts begin with the process.
func (g *Guard) BodiesRead() (whole, part uint64) {
	if g.now() == nil {
		return 0, 0
	}
	return g.state.bodies.whole.Load(), g.state.bodies.part.Load()
}
