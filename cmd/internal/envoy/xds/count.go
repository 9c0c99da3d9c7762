package xds

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// kind is a type of message in a resource.
type kind uint8

const (
	configMessage kind = iota + 1
	descriptorMessage
	policyMessage
	replaceMessage
	structMessage
	entryMessage
	valueMessage
	listMessage
)

// inner returns the type of the message in a field, or 0 for other fields.
func (k kind) inner(field protowire.Number) kind {
	switch {
	case k == configMessage && field == 3, k == descriptorMessage && field == 4:
		return descriptorMessage
	case k == descriptorMessage && field == 3:
		return policyMessage
	case k == descriptorMessage && field == metadataField, k == valueMessage && field == 5:
		return structMessage
	case k == policyMessage && field == 5:
		return replaceMessage
	case k == structMessage && field == 1:
		return entryMessage
	case k == entryMessage && field == 2, k == listMessage && field == 1:
		return valueMessage
	case k == valueMessage && field == 6:
		return listMessage
	}
	return 0
}

// countMessages subtracts the messages in encoded bytes from budget. It allocates nothing, and
// prevents that a short response fills the memory: an empty message of 2 bytes needs over
// 100 bytes after decoding.
func countMessages(encoded []byte, k kind, levels int, budget *int) error {
	if levels == 0 {
		return fmt.Errorf("the messages have more than %d levels: use fewer", maxLevels)
	}
	return eachField(encoded, func(field protowire.Number, value []byte) error {
		inner := k.inner(field)
		if inner == 0 {
			return nil
		}
		if *budget--; *budget < 0 {
			return fmt.Errorf("the response has more than %d descriptors, limits and metadata values: send fewer", maxMessages)
		}
		return countMessages(value, inner, levels-1, budget)
	})
}
