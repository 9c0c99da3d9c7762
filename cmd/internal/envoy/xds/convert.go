package xds

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// request is a message to the server.
type request struct {
	version string // last good version, or "" for none
	nonce   string // nonce of the response that the request answers, or ""
	refusal string // why the response is refused, or "" for an acknowledgement
}

// encode returns the bytes of a request. All strings are valid UTF-8.
func (r request) encode(nodeID string, nodeMetadata map[string]string) ([]byte, error) {
	fields := make(map[string]*structpb.Value, len(nodeMetadata))
	for key, value := range nodeMetadata {
		fields[key] = structpb.NewStringValue(value)
	}
	message := &discoveryv3.DiscoveryRequest{
		VersionInfo: r.version, ResponseNonce: r.nonce, TypeUrl: TypeURL,
		Node: &corev3.Node{Id: nodeID, Metadata: &structpb.Struct{Fields: fields}},
	}
	if r.refusal != "" {
		message.ErrorDetail = &status.Status{Code: int32(code.Code_INVALID_ARGUMENT), Message: r.refusal}
	}
	return proto.Marshal(message)
}

// decodeResource converts the bytes of a RateLimitConfig. The caller has bounded the number of
// messages in them.
func decodeResource(encoded []byte) (Resource, error) {
	var message ratelimitv3.RateLimitConfig
	if err := (proto.UnmarshalOptions{RecursionLimit: maxLevels}).Unmarshal(encoded, &message); err != nil {
		return Resource{}, fmt.Errorf("not a valid RateLimitConfig with at most %d levels: %w", maxLevels, err)
	}
	descriptors, err := descriptorsOf(message.GetDescriptors())
	if err != nil {
		return Resource{}, err
	}
	return Resource{Name: message.GetName(), Domain: message.GetDomain(), Descriptors: descriptors}, nil
}

func descriptorsOf(messages []*ratelimitv3.RateLimitDescriptor) ([]Descriptor, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	all := make([]Descriptor, 0, len(messages))
	for _, m := range messages {
		next, err := descriptorsOf(m.GetDescriptors())
		if err != nil {
			return nil, err
		}
		d := Descriptor{
			Key: m.GetKey(), Value: m.GetValue(), RateLimit: rateLimitOf(m.GetRateLimit()), Descriptors: next,
			ShadowMode: m.GetShadowMode(), DetailedMetric: m.GetDetailedMetric(),
		}
		if err := d.addNewer(m.ProtoReflect().GetUnknown()); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func rateLimitOf(m *ratelimitv3.RateLimitPolicy) *RateLimit {
	if m == nil {
		return nil
	}
	limit := &RateLimit{
		Unit: m.GetUnit().String(), RequestsPerUnit: m.GetRequestsPerUnit(), Unlimited: m.GetUnlimited(), Name: m.GetName(),
	}
	for _, other := range m.GetReplaces() {
		limit.Replaces = append(limit.Replaces, other.GetName())
	}
	return limit
}

// Fields of a descriptor that the protocol has, and the generated types do not have yet.
const (
	quotaModeField protowire.Number = 7 // bool
	metadataField  protowire.Number = 8 // google.protobuf.Struct
)

// addNewer sets the fields that the generated types keep as unknown bytes. As in every protocol
// buffer, the last bool counts, and the parts of a message are merged.
func (d *Descriptor) addNewer(unknown []byte) error {
	var metadata []byte
	found := false
	for len(unknown) > 0 {
		number, kind, size := protowire.ConsumeTag(unknown)
		length := protowire.ConsumeFieldValue(number, kind, unknown[max(size, 0):])
		if size < 0 || length < 0 {
			return fmt.Errorf("descriptor %.60q has malformed fields", d.Key)
		}
		value := unknown[size : size+length]
		switch {
		case number == quotaModeField && kind == protowire.VarintType:
			set, _ := protowire.ConsumeVarint(value)
			d.QuotaMode = protowire.DecodeBool(set)
		case number == metadataField && kind == protowire.BytesType:
			encoded, _ := protowire.ConsumeBytes(value)
			metadata, found = append(metadata, encoded...), true
		}
		unknown = unknown[size+length:]
	}
	if !found {
		return nil
	}
	var message structpb.Struct
	if err := (proto.UnmarshalOptions{RecursionLimit: maxLevels}).Unmarshal(metadata, &message); err != nil {
		return fmt.Errorf("the metadata of descriptor %.60q is malformed, or has more than %d levels: %w", d.Key, maxLevels, err)
	}
	d.Metadata = message.AsMap()
	return nil
}
