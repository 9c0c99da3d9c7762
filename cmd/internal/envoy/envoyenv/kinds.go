package envoyenv

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/config"
)

// variable declares one environment variable.
type variable struct {
	name     string
	fallback string // value of a variable that is not set
	kind     string // what a value is, for people
	meaning  string
	secret   bool // faults do not show the value
	// set parses a value. The error says what to use. It is nil for a variable without effect here.
	set func(*Settings, string) error
}

// Variable describes an environment variable.
type Variable struct {
	Name, Default, Kind, Meaning string
	// HasEffect is false for a variable that is accepted and has no effect in Headgate.
	HasEffect bool
}

// Variables returns all variables, for help and documents. The variables DOG_STATSD_MOGRIFIER_N_*
// are not listed: their names depend on USE_DOG_STATSD_MOGRIFIERS.
func Variables() []Variable {
	declared := variables()
	all := make([]Variable, 0, len(declared))
	for _, v := range declared {
		all = append(all, Variable{v.name, v.fallback, v.kind, v.meaning, v.set != nil})
	}
	return all
}

// without declares a variable that is accepted and has no effect here.
func without(name, fallback, kind, meaning string) variable {
	return variable{name: name, fallback: fallback, kind: kind, meaning: meaning}
}

// newVariable declares a variable whose values parse reads.
func newVariable[T any](name, fallback, kind, meaning string, to func(*Settings) *T, parse func(string) (T, error)) variable {
	return variable{name: name, fallback: fallback, kind: kind, meaning: meaning, set: func(s *Settings, value string) error {
		parsed, err := parse(value)
		if err == nil {
			*to(s) = parsed
		}
		return err
	}}
}

func text(name, fallback, meaning string, to func(*Settings) *string) variable {
	return newVariable(name, fallback, "text", meaning, to, func(value string) (string, error) { return value, nil })
}

func secret(name, meaning string, to func(*Settings) *config.Secret) variable {
	v := newVariable(name, "", "secret", meaning, to, func(value string) (config.Secret, error) { return config.Secret(value), nil })
	v.secret = true
	return v
}

func flag(name, fallback, meaning string, to func(*Settings) *bool) variable {
	return newVariable(name, fallback, "boolean", meaning, to, func(value string) (bool, error) {
		parsed, err := strconv.ParseBool(value)
		if err != nil {
			return false, errors.New("use true or false")
		}
		return parsed, nil
	})
}

func whole(name, fallback, meaning string, most int, to func(*Settings) *int) variable {
	return newVariable(name, fallback, "whole number", meaning, to, func(value string) (int, error) {
		parsed, err := strconv.ParseInt(value, 0, 64)
		if err != nil || parsed < 0 || parsed > int64(most) {
			return 0, fmt.Errorf("use a whole number from 0 to %d", most)
		}
		return int(parsed), nil
	})
}

const maxPort = 65535

func port(name, fallback, meaning string, to func(*Settings) *int) variable {
	return whole(name, fallback, meaning, maxPort, to)
}

func number(name, fallback, meaning string, least, most float64, to func(*Settings) *float64) variable {
	return newVariable(name, fallback, "number", meaning, to, func(value string) (float64, error) {
		parsed, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(parsed) || parsed < least || parsed > most {
			return 0, fmt.Errorf("use a number from %v to %v", least, most)
		}
		return parsed, nil
	})
}

func duration(name, fallback, meaning string, to func(*Settings) *time.Duration) variable {
	return newVariable(name, fallback, "duration", meaning, to, func(value string) (time.Duration, error) {
		parsed, err := time.ParseDuration(value)
		if err != nil || parsed < 0 {
			return 0, errors.New("use a duration with a unit, such as 10s or 500ms, that is not negative")
		}
		return parsed, nil
	})
}

// choice accepts one of the words in any case, and keeps it as listed.
func choice(name, fallback, meaning string, words []string, to func(*Settings) *string) variable {
	return newVariable(name, fallback, "one of "+strings.Join(words, ", "), meaning, to, func(value string) (string, error) {
		for _, word := range words {
			if strings.EqualFold(word, value) {
				return word, nil
			}
		}
		return "", fmt.Errorf("use one of %s", strings.Join(words, ", "))
	})
}

func list(name, meaning string, to func(*Settings) *[]string) variable {
	return newVariable(name, "", "list a,b", meaning, to, func(value string) ([]string, error) {
		if strings.TrimSpace(value) == "" {
			return nil, nil
		}
		if strings.Count(value, ",") >= maxItems {
			return nil, fmt.Errorf("use at most %d items", maxItems)
		}
		return strings.Split(value, ","), nil
	})
}

// maxItems bounds lists and maps.
const maxItems = 1000

// pairs parses k:v,k:v, with another separator in place of the colon. An item with two separators
// and an empty item are faults if strict is true.
func pairs(value, separator string, strict bool) (map[string]string, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil //nolint:nilnil // an empty text is an empty map
	}
	all := make(map[string]string)
	for item := range strings.SplitSeq(value, ",") {
		if item == "" && !strict {
			continue
		}
		key, word, found := strings.Cut(item, separator)
		if !found || strict && strings.Contains(word, separator) || len(all) >= maxItems {
			return nil, fmt.Errorf("use key%svalue,key%svalue, with at most %d items", separator, separator, maxItems)
		}
		all[key] = word
	}
	return all, nil
}

func mapping(name, separator, meaning string, to func(*Settings) *map[string]string) variable {
	return newVariable(name, "", "map k"+separator+"v,k"+separator+"v", meaning, to, func(value string) (map[string]string, error) {
		return pairs(value, separator, separator == ":")
	})
}

// secretMapping is a mapping whose values are secrets.
func secretMapping(name, meaning string, to func(*Settings) *map[string]config.Secret) variable {
	v := newVariable(name, "", "map k:v,k:v", meaning, to, func(value string) (map[string]config.Secret, error) {
		plain, err := pairs(value, ":", true)
		if plain == nil {
			return nil, err
		}
		all := make(map[string]config.Secret, len(plain))
		for key, word := range plain {
			all[key] = config.Secret(word)
		}
		return all, nil
	})
	v.secret = true
	return v
}
