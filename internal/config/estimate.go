package config

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/tokens"
	"github.com/headgate/headgate/rule"
)

const (
	estimateWord = "estimate"
	// The first numbers of estimates.
	bytesPerToken = 4 * tokens.One
	outputTokens  = 500
	imageTokens   = 1000
	// mostEstimate bounds the tokens of an estimate.
	mostEstimate = 10_000_000

	// mostBodyRead bounds what is read of one body. It is the bound of the largest API.
	leastBodyRead = 1 << 10
	mostBodyRead  = 32 << 20
)

// estimate reads a cost that is an estimate. It reports false if the cost is none.
func (s *section) estimate(r *guard.Rule) bool {
	f, given := s.fields["cost"]
	node := f.value
	if given && node.Kind == yaml.AliasNode && node.Alias != nil {
		node = node.Alias
	}
	mapped := given && node.Kind == yaml.MappingNode
	if s.outline != nil {
		s.estimateFields(value{})
	}
	switch {
	case !given:
		if r.SettleBody != nil && len(r.SettleBody.Headers) == 0 {
			r.Estimate = newEstimate()
		}
		return false
	case mapped:
		v, ok := s.get("cost")
		if ok {
			r.Estimate = s.estimateFields(v)
		}
	case node.Kind == yaml.ScalarNode && node.Value == estimateWord:
		_, _ = s.get("cost")
		r.Estimate = newEstimate()
	default:
		return false
	}
	if r.SettleBody == nil && !s.blamed(s.pathOf(settleName)) {
		s.fault(s.keyOf("cost"), "an estimate needs the tokens that the answer states", "write settle: openai, or a number")
		r.Estimate = nil
	}
	return true
}

func newEstimate() *guard.Estimate {
	return &guard.Estimate{BytesPerToken: bytesPerToken, Output: outputTokens, Image: imageTokens}
}

// estimateFields reads cost as a mapping; nil with a fault.
func (s *section) estimateFields(v value) *guard.Estimate {
	e := newEstimate()
	around := s.section(v, "write it like {estimate: {output: 500}}")
	around.parent, around.outline = s, s.outline.field("cost").or()
	if around.self.node != nil {
		around.required(estimateWord, "write it like {estimate: {output: 500}}")
	}
	of := around.sub(around.declare(estimateWord, field.Taken, "Tokens that a request takes before its answer states them. The numbers "+
		"are the first ones: settled answers teach better ones."), "{output: 500}")
	of.outline.field(of.declare("bytes_per_token", field.Taken, "Bytes of text of one token. Default: 4.")).weight()
	if of.has("bytes_per_token") && of.weightOf("bytes_per_token", &e.BytesPerToken) && e.BytesPerToken < tokens.One/4 {
		s.fault(of.keyOf("bytes_per_token"), "is less than 0.25", "write how many bytes one token has, like 4")
	}
	of.number(of.declare("output", field.Taken, "Tokens of an answer whose request does not bound them."), &e.Output, 1, mostEstimate)
	of.number(of.declare("image", field.Taken, "Tokens of one image or file of the request."), &e.Image, 1, mostEstimate)
	for _, name := range [...]string{"output", "image", "learn"} {
		of.outline.field(name).dependent() // Without an estimate, there is none.
	}
	learn := true
	of.boolean(of.declare("learn", field.Taken, "false keeps these numbers, whatever answers state."), &learn)
	e.Fixed = !learn
	of.end()
	around.end()
	return e
}

// bodySettings reads the settings of a rule that reads bodies, after its cost.
func (s *section) bodySettings(r *guard.Rule) {
	most := int64(defaultMaxBody)
	s.size(s.declare("max_body", field.Taken, "How much of a request's body is read before the decision, for rules that match or count by "+
		"the body or estimate tokens: 1KiB to 32MiB. A longer body is decided with what was read, and never refused for its size."),
		&most, leastBodyRead, mostBodyRead)
	s.outline.field("max_body").dependent() // There is none in a rule that reads no body.
	reads := r.ReadsBody() || r.Estimate != nil
	if reads {
		r.MaxBody = most
	}
	unsure := s.blamed(s.pathOf(settleName)) || s.blamedAny("match", "key", "exempt", "cost")
	if where, given := s.given("max_body"); given && !reads && !unsure {
		s.fault(where, "has no effect, because the rule reads no body", "remove it, or write settle: openai, match.json or key: [model]")
	}
	s.outline.field("on_spent").dependent() // As max_body.
	oneOf(s, s.declare("on_spent", field.Taken, "What happens to an answer whose key has no units left while it passes: finish lets it "+
		"pass, and charges it at its end; stop ends a stream after a whole event, with the error event of its API."),
		&r.OnSpent, choicesOf(guard.OnSpents()))
	if where, given := s.given("on_spent"); given && !unsure && !s.blamedAny("on_spent") {
		switch {
		case r.SettleBody == nil:
			s.fault(where, "has no effect, because no body states the cost", "remove it, or write settle: openai")
		case len(r.SettleBody.Headers) > 0:
			s.fault(where, "has no effect, because headers state the cost", "remove it, or write settle: bedrock")
		}
	}
	if r.OnSpent == guard.StopAnswer && r.SettleBody == nil {
		r.OnSpent = guard.FinishAnswer
	}
	s.overdraft(r)
}

// readsRules checks that one reader can read the fields of all rules.
func (r *reader) readsRules(c *Config) {
	var settles []*tokens.Settle
	var reads rule.Reads
	for i := range c.Rules {
		if one := &c.Rules[i]; one.Mode != guard.Off {
			if one.SettleBody != nil {
				settles = append(settles, one.SettleBody)
			}
			reads.AddRule(&one.Rule)
		}
	}
	if r.blamed("rules") || len(settles)+len(reads.Body) == 0 {
		return
	}
	if _, err := tokens.NewReader(settles, reads.Body); err != nil {
		problem, fix, _ := strings.Cut(err.Error(), ": ")
		r.fault(r.find("rules"), problem+": "+fix, "read fewer fields, or put them in fewer rules")
	}
}
