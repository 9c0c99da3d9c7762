package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/tokens"
	"github.com/headgate/headgate/internal/usage"
	"github.com/headgate/headgate/rule"
)

const (
	settleName    = "settle"
	settleExample = "{from: openai, weights: {input: 1, output: 4}}"
	settleAdvice  = "write an API like openai, or header:X-Actual-Cost, trailer:X-Actual-Cost, bytes:response or fields like " +
		settleExample
	jsonExample = "{tokens: usage.total_tokens}"
	// maxSettleFields bounds the numbers of one rule, and maxFieldPaths the places of one number.
	maxSettleFields = 12
	maxFieldPaths   = 8
)

// settle reads where the answer states the real cost of a request.
func (s *section) settle(r *guard.Rule) {
	o := s.outline.field(s.declare(settleName, field.Taken, "Where the answer states the real cost of a request: an API of models, whose "+
		"tokens are the cost, a header or a trailer, the bytes of bodies, or fields of JSON. The cost before is an estimate."))
	o.words("", apiWords())
	o.written("", settlePattern)
	v, ok := s.get(settleName)
	nested := value{path: v.path}
	switch {
	case !ok:
	case v.node.Kind == yaml.MappingNode:
		nested.node = v.node
	case v.node.Kind != yaml.ScalarNode:
		s.fault(v, "must be one value or fields, not "+kindOf(v.node), settleAdvice)
	default:
		s.settleWord(v, r)
	}
	parts := s.section(nested, "write it like "+settleExample)
	parts.parent, parts.outline = s, o.or()
	if settle := parts.settleFields(); nested.node != nil && settle != nil {
		r.SettleBody = settle
	}
}

func apiWords() (words []string) {
	for _, a := range tokens.APIs() {
		words = append(words, a.String())
	}
	return words
}

// settleWord reads a settle that is one value.
func (s *section) settleWord(v value, r *guard.Rule) {
	for _, bodies := range [...]guard.Bytes{guard.RequestBytes, guard.ResponseBytes, guard.RequestBytes | guard.ResponseBytes} {
		if v.text() == bytesPrefix+bodies.String() {
			r.Bytes = bodies
			return
		}
	}
	for _, prefix := range [...]string{costHeaderPrefix, trailerPrefix} {
		if name, found := strings.CutPrefix(v.text(), prefix); found {
			r.Settle, _ = s.headerName(v, len(prefix), name, prefix+"X-Actual-Cost")
			return
		}
	}
	for _, a := range tokens.APIs() {
		if v.text() == a.String() {
			r.SettleBody = &tokens.Settle{API: a}
			return
		}
	}
	if near := rule.Nearest(v.text(), apiWords()); near != "" {
		s.fault(v, quote(v.text())+" is not known", "did you mean "+near+"?")
		return
	}
	s.fault(v, "must be an API ("+strings.Join(apiWords(), ", ")+"), header:NAME, trailer:NAME, bytes:request, bytes:response "+
		"or bytes:both, not "+quote(v.text()), settleAdvice)
}

// settleFields reads a settle that is a mapping; nil with a fault.
func (s *section) settleFields() *tokens.Settle {
	var t tokens.Settle
	s.outline.field(s.declare("from", field.Taken, "API that states the tokens; auto takes the API by path and content type.")).
		words("", apiWords())
	if v, ok := s.scalar("from", "an API"); ok {
		chosen(s.reader, v, &t.API, choicesOf(tokens.APIs()))
	}
	s.answerFields(&t)
	s.outline.field("merge").dependent() // An API has its own.
	s.outline.field("prices").dependent()
	oneOf(s, s.declare("merge", field.Taken, "Which of the numbers of a stream counts that it states at one place. Only with json."),
		&t.Merge, choicesOf(tokens.Merges()))
	s.headerFields(&t)
	s.tokenWeights(&t)
	prices := false
	s.boolean(s.declare("prices", field.Taken, "true takes the prices of the top level as the weights: the units are millionths of the "+
		"currency. Only with from."), &prices)
	s.checkSettle(&t)
	if prices {
		s.usePrices(&t)
	}
	s.end()
	if s.self.node == nil || s.blamed(s.self.path) {
		return nil
	}
	return &t
}

// checkSettle finds settings that contradict each other.
func (s *section) checkSettle(t *tokens.Settle) {
	if s.self.node == nil {
		return
	}
	var set []string
	for _, name := range [...]string{"from", "json", "headers"} {
		if s.has(name) {
			set = append(set, name)
		}
	}
	switch {
	case len(set) == 0:
		s.fault(s.self, "does not say where the cost is", "write it like "+settleExample+" or {json: "+jsonExample+"}")
	case len(set) > 1:
		s.fault(s.keyOf(set[1]), "states the cost a second time, beside "+set[0], "remove "+set[0]+" or "+set[1])
	}
	if s.has("merge") && !s.has("json") {
		s.fault(s.keyOf("merge"), "is only valid with json: an API has its own", "remove it, or write json: "+jsonExample)
	}
	if s.has("weights") && s.has("headers") {
		s.fault(s.keyOf("weights"), "the headers have their weights", "write them like headers: {X-Tokens: 1}")
	}
	if s.has("prices") && !s.has("from") {
		s.fault(s.keyOf("prices"), "is only valid with from: prices are of the tokens of an API", "write from: auto, or weights")
	} else if s.has("prices") && s.has("weights") {
		s.fault(s.keyOf("prices"), "the weights are the cost of the tokens already", "remove weights or prices")
	}
	if t.API == tokens.NoAPI && !s.blamed(s.self.path) && len(t.JSON)+len(t.Headers) > 0 &&
		!slices.ContainsFunc(slices.Concat(t.JSON, t.Headers), func(f tokens.Field) bool { return f.Weight > 0 }) {
		s.fault(s.self, "has only weights of 0, so that every request is free", "give one number a weight, like 1")
	}
}

// answerFields reads the numbers of a JSON answer.
func (s *section) answerFields(t *tokens.Settle) {
	all := s.sub(s.declare("json", field.Taken, "Numbers of the JSON answer, or of its events, by names of your own: each has a path, or "+
		"a list of paths of which one is in an answer."), jsonExample)
	o := all.outline.each(maxSettleFields)
	if o != nil {
		o.text("", "", 1, 0)
		o.list(1, maxFieldPaths)
		o.entries().text("", "", 1, 0)
	}
	if n := len(all.names); n > maxSettleFields {
		s.fault(s.keyOf("json"), "has "+field.Counted(n, "number"), "use at most "+field.Counted(maxSettleFields, "number"))
		return
	}
	for _, name := range all.names {
		if f := (tokens.Field{Name: name, Weight: tokens.One}); all.fieldPaths(name, &f) {
			t.JSON = append(t.JSON, f)
		}
	}
	if all.self.node != nil && len(all.names) == 0 {
		s.fault(s.keyOf("json"), "has no number", "write it like "+jsonExample)
	}
}

// fieldPaths reads the places of one number.
func (s *section) fieldPaths(name string, f *tokens.Field) bool {
	v, ok := s.valueOf(name)
	s.record(name)
	if !ok {
		return false
	}
	entries := []value{v}
	if v.node.Kind == yaml.SequenceNode {
		entries, ok = s.scalars(name, "[usage.prompt_tokens, usage.input_tokens]", maxFieldPaths)
	} else if v.node.Kind != yaml.ScalarNode {
		s.fault(v, "must be a path or a list of paths, not "+kindOf(v.node), "write it like usage.total_tokens")
		return false
	}
	for _, v := range entries {
		if err := usage.CheckPath(v.text()); err != nil {
			s.settingFault(v, err)
			ok = false
		}
		f.Paths = append(f.Paths, v.text())
	}
	return ok && len(f.Paths) > 0
}

// settingFault notes an error that says what is wrong and, behind a colon, what to do.
func (r *reader) settingFault(v value, err error) {
	problem, fix, found := strings.Cut(err.Error(), ": ")
	if !found {
		fix = "compare it with docs/tokens.md"
	}
	r.fault(v, problem, fix)
}

// headerFields reads the headers whose weighted sum is the cost.
func (s *section) headerFields(t *tokens.Settle) {
	all := s.sub(s.declare("headers", field.Taken, "Headers and trailers of the answer with numbers, and the weight of each: the cost is "+
		"their sum."), "{X-Amzn-Bedrock-Output-Token-Count: 1}")
	all.outline.each(maxSettleFields).weight()
	if n := len(all.names); n > maxSettleFields {
		s.fault(s.keyOf("headers"), "has "+field.Counted(n, "header"), "use at most "+field.Counted(maxSettleFields, "header"))
		return
	}
	for _, name := range all.names {
		f := tokens.Field{Weight: tokens.One}
		named, valid := s.headerName(all.keyOf(name), 0, name, "X-Tokens")
		if f.Name = named; all.weightOf(name, &f.Weight) && valid {
			t.Headers = append(t.Headers, f)
		}
	}
	if all.self.node != nil && len(all.names) == 0 {
		s.fault(s.keyOf("headers"), "has no header", "write it like {X-Tokens: 1}")
	}
}

// tokenWeights reads the costs of the tokens of an API, or of the numbers of json.
func (s *section) tokenWeights(t *tokens.Settle) {
	all := s.sub(s.declare("weights", field.Taken, "Units of one token: input, cached, written and output with from, or the names of "+
		"json. Default: 1 each. With from and no weights, the cost is at least the total that the answer states."), "{input: 1, output: 4}")
	all.outline.each(maxSettleFields).weight()
	w := tokens.Weights{Input: tokens.One, Cached: tokens.One, Written: tokens.One, Output: tokens.One}
	targets := kindsOf(&w)
	if s.has("json") {
		targets = targets[:0]
		for i := range t.JSON {
			targets = append(targets, kind{t.JSON[i].Name, &t.JSON[i].Weight})
		}
	}
	all.kinds(targets, s.blamed(s.pathOf("json")))
	if all.self.node == nil || t.API == tokens.NoAPI {
		return
	}
	if t.Weights = w; w == (tokens.Weights{}) {
		s.fault(s.keyOf("weights"), "all weights are 0, so that every request is free", "give one kind a weight, like output: 1")
	}
}

// kind is a kind of token, with its weight.
type kind struct {
	name   string
	weight *tokens.Weight
}

func kindsOf(w *tokens.Weights) []kind {
	return []kind{{"input", &w.Input}, {"cached", &w.Cached}, {"written", &w.Written}, {"output", &w.Output}}
}

// kinds reads weights of any of targets. incomplete says that some targets are missing because of a fault.
func (s *section) kinds(targets []kind, incomplete bool) {
	names := make([]string, len(targets))
	for i := range targets {
		names[i] = targets[i].name
	}
	for _, name := range s.names {
		if i := slices.Index(names, name); i >= 0 {
			s.weightOf(name, targets[i].weight)
			continue
		}
		fix := "use one of " + strings.Join(names, ", ")
		if near := rule.Nearest(name, names); near != "" {
			fix = "did you mean " + near + "?"
		}
		if !incomplete {
			s.fault(s.keyOf(name), "no number is named "+quote(name), fix)
		}
	}
}

// weightOf reads the weight of a field of any name.
func (s *section) weightOf(name string, into *tokens.Weight) bool {
	s.record(name)
	v, ok := s.valueOf(name)
	if !ok {
		return false
	}
	if v.node.Kind != yaml.ScalarNode {
		s.fault(v, "must be a number, not "+kindOf(v.node), "write it like 0.25")
		return false
	}
	if !s.unquoted(v, "a number") {
		return false
	}
	w, err := tokens.ParseWeight(v.text())
	if err != nil {
		s.settingFault(v, err)
		return false
	}
	*into = w
	return true
}

// weight describes a weight or a price.
func (o *outline) weight() {
	if o != nil {
		o.form(nil, map[string]any{"type": "number", "minimum": 0, "maximum": 1_000_000})
	}
}
