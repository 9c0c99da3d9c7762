package rls

import "github.com/headgate/headgate/internal/proto/wire"

// The memory of a request and its answer, in bytes. TestMemoryOfRequests measures it.
const (
	// descriptorBytes is one descriptor: its messages in the request and the answer, and its
	// place in the working memory of a call.
	descriptorBytes = 4<<10 + 512
	// entryBytes is one entry of a descriptor, and metadataBytes is its echo in dynamic metadata.
	entryBytes    = 256
	metadataBytes = 1 << 10
	// free is what the server counts for every call anyway.
	free = 4 << 10
	// jsonFactor is the memory of a body in JSON for each of its bytes: a descriptor may have 26.
	// TestMemoryOfJSON measures it.
	jsonFactor = 320
	// freeAnswer is what an answer in JSON may have, beside the length of its body, without being counted: both are
	// in the memory of a connection that headgate check prints.
	freeAnswer = 256 << 10
	// jsonMemory bounds the memory of all bodies in JSON at one time. The longest body gets all of it.
	jsonMemory = 64 << 20
)

// Numbers of the fields of RateLimitRequest and RateLimitDescriptor.
const (
	fieldDescriptors = 2
	fieldEntries     = 1
)

// memoryOf is the memory of a request and its answer.
func memoryOf(length, descriptors, entries int, metadata bool) int64 {
	perByte, perEntry := int64(2), int64(entryBytes)
	if metadata {
		perByte, perEntry = 4, entryBytes+metadataBytes
	}
	return int64(length)*perByte + int64(descriptors)*descriptorBytes + int64(entries)*perEntry
}

// countParts counts the descriptors and the entries of an encoded request. It reports the first
// number above its bound.
func countParts(b []byte) (descriptors, entries int, fault error) {
	wire.EachMessage(b, fieldDescriptors, func(descriptor []byte) {
		own := 0
		wire.EachMessage(descriptor, fieldEntries, func([]byte) { own++ })
		if own > maxEntries && fault == nil {
			fault = wrongEntries(descriptors, own)
		}
		descriptors++
		entries += own
	})
	if descriptors > maxDescriptors {
		fault = tooManyDescriptors(descriptors)
	}
	return descriptors, entries, fault
}
