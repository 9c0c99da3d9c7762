package rls

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate"
)

// text and number make values of dynamic metadata.
func text(s string) *structpb.Value    { return structpb.NewStringValue(s) }
func number(n float64) *structpb.Value { return structpb.NewNumberValue(n) }

func listOf(values []*structpb.Value) *structpb.Value {
	return structpb.NewListValue(&structpb.ListValue{Values: values})
}

// entriesOf lists the entries of a descriptor as key=value.
func entriesOf(d headgate.Descriptors) *structpb.Value {
	values := make([]*structpb.Value, len(d))
	for i, e := range d {
		values[i] = text(e.Name + "=" + e.Value)
	}
	return listOf(values)
}

// quotaFields adds what quota_mode did: the positions of the descriptors over such limits, and whether
// a limit has quota_mode.
func quotaFields(fields map[string]*structpb.Value, statuses []descriptorStatus) {
	var violations []*structpb.Value
	enabled := false
	for i := range statuses {
		s := &statuses[i]
		if s.violated {
			violations = append(violations, number(float64(i)))
		}
		enabled = enabled || s.leaf != nil && s.leaf.QuotaMode
	}
	if len(violations) > 0 {
		fields["quotaModeViolations"] = listOf(violations)
	}
	fields["quotaModeEnabled"] = structpb.NewBoolValue(enabled)
}

// meteredFields adds the number of units that are beyond the included units of customers' plans, of each descriptor and together.
// A refused descriptor has none.
func (c *call) meteredFields(fields map[string]*structpb.Value, descriptors []*structpb.Value) {
	var sum int64
	for i := range descriptors {
		if metered := c.answers[i].Metered(); metered > 0 {
			sum += metered
			descriptors[i].GetStructValue().Fields["metered"] = number(float64(metered))
		}
	}
	if sum > 0 {
		fields["metered"] = number(float64(sum))
	}
}

// mergedMetadata merges the metadata of the limits that passed. The first value of a name wins, and
// objects are merged.
func mergedMetadata(statuses []descriptorStatus) (*structpb.Value, error) {
	merged := map[string]any{}
	for i := range statuses {
		if s := &statuses[i]; s.leaf != nil && !s.over && !s.violated {
			merge(merged, s.leaf.Metadata)
		}
	}
	if len(merged) == 0 {
		return nil, nil //nolint:nilnil // There is no metadata, and that is no error.
	}
	return structpb.NewValue(merged)
}

// merge adds the fields of from that into lacks.
func merge(into, from map[string]any) {
	for name, value := range from {
		own, has := into[name]
		below, object := value.(map[string]any)
		switch {
		case !has && object:
			copied := map[string]any{}
			merge(copied, below)
			into[name] = copied
		case !has:
			into[name] = value
		case object:
			if inner, both := own.(map[string]any); both {
				merge(inner, below)
			}
		}
	}
}
