package tokens

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/usage"
)

// maxWeight is the largest Weight: a million units for one token.
const maxWeight = 1_000_000 * One

// ParseWeight reads a weight such as "0.15": digits, with at most six behind the point.
func ParseWeight(text string) (Weight, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if whole == "" || len(whole) > 7 || point && fraction == "" {
		return 0, fmt.Errorf("weight %q: write a number from 0 to 1000000, such as 0.15", text)
	}
	if len(fraction) > 6 {
		return 0, fmt.Errorf("weight %q has %d digits behind the point: at most 6 are exact", text, len(fraction))
	}
	var w Weight
	for _, c := range []byte(whole + fraction + "000000"[len(fraction):]) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("weight %q: write a number from 0 to 1000000, such as 0.15", text)
		}
		w = w*10 + Weight(c-'0')
	}
	if w > maxWeight {
		return 0, fmt.Errorf("weight %q is above 1000000: use a smaller unit for the limit", text)
	}
	return w, nil
}

// String gives a weight as ParseWeight reads it.
func (w Weight) String() string {
	text := fmt.Sprintf("%d.%06d", int64(w)/int64(One), int64(w)%int64(One))
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Check reports what is wrong with a Settle; nil if it can be used.
func (s *Settle) Check() error {
	set := 0
	for _, is := range [...]bool{s.API != NoAPI, len(s.JSON) > 0, len(s.Headers) > 0} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return fmt.Errorf("%d of API, JSON and Headers are set: set one", set)
	case int(s.API) >= len(apiNames):
		return fmt.Errorf("API %d is unknown: use one of APIs", s.API)
	case int(s.Merge) >= len(mergeNames):
		return fmt.Errorf("merge %d is unknown: use one of Merges", s.Merge)
	case s.API == NoAPI && (s.Weights != Weights{} || len(s.Prices) > 0):
		return fmt.Errorf("weights and prices of tokens need an API: give JSON and Headers weights of their own")
	case s.Weights != Weights{} && len(s.Prices) > 0:
		return fmt.Errorf("both weights and prices are set: set one")
	}
	for _, check := range [...]func() error{s.checkWeights, s.checkPrices, s.checkFields} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Settle) checkWeights() error { return s.Weights.check() }

// check reports a weight out of range.
func (w Weights) check() error {
	for _, one := range [...]Weight{w.Input, w.Cached, w.Written, w.Output} {
		if one < 0 || one > maxWeight {
			return fmt.Errorf("weight %s: use 0 to 1000000", one)
		}
	}
	return nil
}

func (s *Settle) checkPrices() error {
	others := len(s.Prices) == 0
	for i, p := range s.Prices {
		if p.Model == "" {
			return fmt.Errorf("price %d has no model: use a name, or a pattern such as \"*\"", i)
		}
		if err := p.Weights.check(); err != nil {
			return fmt.Errorf("price of %q: %w", p.Model, err)
		}
		others = others || p.Model == "*"
	}
	if !others {
		return fmt.Errorf("the prices have no \"*\": add a price of all other models, so that an unknown model is not free")
	}
	return nil
}

func (s *Settle) checkFields() error {
	var sum Weight
	for _, f := range s.JSON {
		if len(f.Paths) == 0 {
			return fmt.Errorf("field %q has no path: add one, such as usage.total_tokens", f.Name)
		}
		for _, path := range f.Paths {
			if err := usage.CheckPath(path); err != nil {
				return fmt.Errorf("field %q: %w", f.Name, err)
			}
		}
	}
	for _, f := range s.Headers {
		if f.Name == "" || len(f.Paths) > 0 {
			return fmt.Errorf("header %q: give a header its name, and no path", f.Name)
		}
	}
	if len(s.Headers) > maxHeaders {
		return fmt.Errorf("%d headers: at most %d are summed", len(s.Headers), maxHeaders)
	}
	for _, list := range [...][]Field{s.JSON, s.Headers} {
		for _, f := range list {
			if f.Weight < 0 || f.Weight > maxWeight {
				return fmt.Errorf("field %q has the weight %s: use 0 to 1000000", f.Name, f.Weight)
			}
			sum += f.Weight
		}
	}
	if s.API == NoAPI && sum == 0 {
		return fmt.Errorf("all weights are 0: give one field a weight, such as 1")
	}
	return nil
}
