package fairshare

import (
	"reflect"
	"slices"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// TestChangedTerms checks that a change of each setting of fair share is logged.
func TestChangedTerms(t *testing.T) {
	part, err := rule.ParsePart("ip")
	if err != nil {
		t.Fatal(err)
	}
	settings := 0
	var walk func(kind reflect.Type, path []int)
	walk = func(kind reflect.Type, path []int) {
		for n := range kind.NumField() {
			field, here := kind.Field(n), append(slices.Clone(path), n)
			switch {
			case field.Anonymous:
				walk(field.Type, here)
				continue
			case field.Name == "Seed": // No file sets it.
				continue
			}
			var changed guard.FairShare
			switch v := reflect.ValueOf(&changed).Elem().FieldByIndex(here); {
			case v.Type() == reflect.TypeFor[rule.Part]():
				v.Set(reflect.ValueOf(part))
			case v.Type() == reflect.TypeFor[rule.Match]():
				v.Set(reflect.ValueOf(rule.Match{Path: "/a"}))
			case v.Type() == reflect.TypeFor[guard.Exempt]():
				v.Set(reflect.ValueOf(guard.Exempt{Paths: []string{"/a"}}))
			case v.CanInt():
				v.SetInt(1)
			case v.CanUint():
				v.SetUint(1)
			case v.Kind() == reflect.String:
				v.SetString("x")
			case v.Kind() == reflect.Bool:
				v.SetBool(true)
			default:
				v.Set(reflect.ValueOf(map[string]int64{"a": 1}))
			}
			settings++
			if names := changedTerms(new(guard.FairShare), &changed); len(names) != 1 {
				t.Errorf("when %s changes, %q do", field.Name, names)
			}
		}
	}
	walk(reflect.TypeFor[guard.FairShare](), nil)
	if settings < 15 {
		t.Errorf("%d settings were tried", settings)
	}
}
