package rls

import "google.golang.org/protobuf/encoding/protowire"

// The memory of a request and its answer, in bytes. TestMemoryOfRequests measures it.
const (
	// descriptorBytes is one descriptor: its messages in the request and the answer, and its
	// place in the working memory of a call.
	descriptorBytes = 4 << 10
	// entryBytes is one entry of a descriptor, and metadataBytes is its echo in dynamic metadata.
	entryBytes    = 256
	metadataBytes = 1 << 10
	// free is what the server counts for every call anyway.
	free = 4 << 10
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
// number above its bound. It stops at bytes that are no message: decoding them fails.
func countParts(b []byte) (descriptors, entries int, fault error) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		length := protowire.ConsumeFieldValue(number, kind, b[n:])
		if length < 0 {
			break
		}
		if number == fieldDescriptors && kind == protowire.BytesType {
			one, _ := protowire.ConsumeBytes(b[n:])
			own := countEntries(one)
			if own > maxEntries && fault == nil {
				fault = wrongEntries(descriptors, own)
			}
			descriptors++
			entries += own
		}
		b = b[n+length:]
	}
	if descriptors > maxDescriptors {
		fault = tooManyDescriptors(descriptors)
	}
	return descriptors, entries, fault
}

// countEntries counts the entries of an encoded descriptor.
func countEntries(b []byte) (entries int) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		length := protowire.ConsumeFieldValue(number, kind, b[n:])
		if length < 0 {
			break
		}
		if number == fieldEntries && kind == protowire.BytesType {
			entries++
		}
		b = b[n+length:]
	}
	return entries
}
