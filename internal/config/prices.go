package config

import (
	"fmt"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/tokens"
)

const (
	pricesName    = "prices"
	pricesExample = `{"gpt-4o-mini*": {input: 0.15, output: 0.6}, "*": {input: 5, output: 25}}`
	// otherModels is the pattern of the models that no other pattern matches.
	otherModels = "*"
	// maxPrices bounds the patterns: each answer compares its model with all of them. maxModel bounds one, in bytes.
	maxPrices = 256
	maxModel  = 128
)

// prices reads the prices of models, before the rules.
func (s *section) prices() {
	all := s.sub(s.declare(pricesName, field.Taken, "Prices of models for rules with settle: {prices: true}, by patterns of their names: "+
		"dollars (or another currency) for a million tokens, so that units are millionths of it. A name has precedence over a pattern, "+
		"and a long pattern over a short one. \"*\" is required."), pricesExample)
	all.settable = false // Variables cannot set the fields of a price.
	each := all.outline.each(maxPrices)
	if all.self.node == nil {
		return
	}
	s.priced = true
	if n := len(all.names); n > maxPrices {
		s.fault(s.keyOf(pricesName), fmt.Sprintf("has %d models", n),
			fmt.Sprintf("use at most %d, with patterns like \"gpt-4o*\"", maxPrices))
		return
	}
	for _, model := range all.names {
		v, ok := all.valueOf(model)
		if !ok || s.full {
			continue
		}
		if model == "" || len(model) > maxModel {
			s.fault(all.keyOf(model), "the name of a model has 1 to 128 bytes", "write it like \"gpt-4o-mini*\"")
		}
		one := s.section(v, "write it like {input: 0.15, output: 0.6}")
		one.outline = each
		if p, ok := one.price(model); ok {
			s.priceTable = append(s.priceTable, p)
		}
	}
	if !all.has(otherModels) && !all.merged {
		s.fault(s.keyOf(pricesName), `has no price of "*", so that the tokens of an unknown model would be free`,
			`write one, like "*": {input: 5, output: 25}`)
	}
}

// price reads the price of one model. It reports false with a fault.
func (s *section) price(model string) (p tokens.Price, ok bool) {
	p.Model = model
	s.required("input", "write the price of a million tokens, like input: 0.15")
	texts := [...]string{
		"Price of a million tokens of the request that are neither read from a cache nor written to it.",
		"Price of a million tokens that are read from a cache. Default: input.",
		"Price of a million tokens that are written to a cache. Default: input.",
		"Price of a million tokens of the answer. Default: input.",
	}
	for i, k := range kindsOf(&p.Weights) {
		s.outline.field(s.declare(k.name, field.Taken, texts[i])).weight()
		if i > 0 {
			*k.weight = p.Weights.Input
		}
		s.weightOf(k.name, k.weight)
	}
	s.end()
	if model == otherModels && p.Weights == (tokens.Weights{}) && s.has("input") && !s.blamed(s.self.path) {
		s.fault(s.keyOf("input"), "the price of unknown models is 0, so that they are free", "write the highest price that you pay")
	}
	return p, !s.blamed(s.self.path)
}

// usePrices makes the prices of the top level the weights of a rule.
func (s *section) usePrices(t *tokens.Settle) {
	s.usesPrices = true
	if !s.priced {
		s.fault(s.keyOf(pricesName), "there are no prices at the top level", "write them like prices: "+pricesExample)
		return
	}
	t.Prices, t.Weights = s.priceTable, tokens.Weights{}
}

// checkPrices finds prices that no rule uses, after the rules.
func (s *section) checkPrices() {
	if s.has(pricesName) && !s.usesPrices && !s.blamed("rules") && s.outline == nil {
		s.fault(s.keyOf(pricesName), "has no effect, because no rule has settle with prices: true",
			"write settle: {from: auto, prices: true} in a rule, or remove it")
	}
}
