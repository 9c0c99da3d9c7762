package xds

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/internal/sorting"
)

const (
	// maxResources is ten times the largest known set.
	maxResources = 100_000
	// maxMessages bounds the descriptors, limits and metadata values in a response. Each of them
	// needs 2 bytes or more in the response, and up to 300 bytes in memory.
	maxMessages = 1_000_000
	// maxLevels is far above the levels of a tree of descriptors.
	maxLevels = 100
	// maxToken bounds a version and a nonce, which answers repeat.
	maxToken = 4 << 10
)

// digest identifies a content.
type digest [sha256.Size]byte

// response is a message from the server. Its resources are still encoded.
type response struct {
	typeURL, version, nonce string
	resources               []encodedResource
	tooMany                 bool   // more than maxResources; the resources are incomplete
	content                 digest // of the resources
}

// encodedResource is a google.protobuf.Any.
type encodedResource struct {
	typeURL string
	value   []byte
}

var errMalformed = errors.New("config/source/xds: the server sent a malformed response: check that Server leads to a management server")

// decode reads a DiscoveryResponse. The response keeps references to the bytes.
func (r *response) decode(encoded []byte) error {
	*r = response{}
	err := eachField(encoded, func(number protowire.Number, value []byte) error {
		switch int(number) {
		case 1:
			r.version = string(value[:min(len(value), maxToken+1)])
		case 2:
			return r.add(value)
		case 4:
			r.typeURL = string(value[:min(len(value), maxToken+1)])
		case 5:
			r.nonce = string(value[:min(len(value), maxToken+1)])
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(r.version) > maxToken || len(r.nonce) > maxToken || len(r.typeURL) > maxToken:
		return fmt.Errorf("config/source/xds: the server sent a version, nonce or type of more than %d bytes: use shorter ones", maxToken)
	case !utf8.ValidString(r.version) || !utf8.ValidString(r.nonce):
		return errMalformed
	}
	r.content = r.sum()
	return nil
}

// add reads an Any.
func (r *response) add(encoded []byte) error {
	if len(r.resources) == maxResources {
		r.tooMany = true
		return nil
	}
	var one encodedResource
	err := eachField(encoded, func(number protowire.Number, value []byte) error {
		switch int(number) {
		case 1:
			one.typeURL = string(value[:min(len(value), len(TypeURL)+1)])
		case 2:
			one.value = value
		}
		return nil
	})
	r.resources = append(r.resources, one)
	return err
}

// eachField calls f for each length-delimited field of a message, and skips other fields.
func eachField(encoded []byte, f func(protowire.Number, []byte) error) error {
	for len(encoded) > 0 {
		number, kind, size := protowire.ConsumeTag(encoded)
		if size < 0 {
			return errMalformed
		}
		encoded = encoded[size:]
		length := protowire.ConsumeFieldValue(number, kind, encoded)
		if length < 0 {
			return errMalformed
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(encoded)
			if err := f(number, value); err != nil {
				return err
			}
		}
		encoded = encoded[length:]
	}
	return nil
}

// sum returns the digest of the resources in any order: servers keep resources in maps.
func (r *response) sum() digest {
	each := make([]digest, 0, len(r.resources))
	for _, one := range r.resources {
		h := sha256.New()
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(one.typeURL))))
		h.Write([]byte(one.typeURL))
		h.Write(one.value)
		each = append(each, digest(h.Sum(nil)))
	}
	sorting.Func(each, func(a, b digest) int { return slices.Compare(a[:], b[:]) })
	h := sha256.New()
	for _, one := range each {
		h.Write(one[:])
	}
	return digest(h.Sum(nil))
}

// convert decodes all resources and sorts them by name. The errors name the faulty resource.
func (r *response) convert() ([]Resource, error) {
	if r.tooMany {
		return nil, fmt.Errorf("the response has more than %d resources: send fewer", maxResources)
	}
	budget := maxMessages
	all := make([]Resource, 0, len(r.resources))
	for i, one := range r.resources {
		if one.typeURL != TypeURL {
			return nil, fmt.Errorf("resource %d has type %.100q: send resources of type %s only", i, one.typeURL, TypeURL)
		}
		if err := countMessages(one.value, configMessage, maxLevels, &budget); err != nil {
			return nil, fmt.Errorf("resource %d: %w", i, err)
		}
		resource, err := decodeResource(one.value)
		if err != nil {
			return nil, fmt.Errorf("resource %d: %w", i, err)
		}
		all = append(all, resource)
	}
	sorting.StableFunc(all, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Domain, b.Domain))
	})
	for i := 1; i < len(all); i++ {
		if all[i].Name != "" && all[i].Name == all[i-1].Name {
			return nil, fmt.Errorf("two resources have the name %.100q: give each resource its own name", all[i].Name)
		}
	}
	return all, nil
}
