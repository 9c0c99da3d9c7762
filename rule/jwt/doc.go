// Package jwt verifies bearer tokens (JSON Web Tokens, RFC 7519) with the public keys of
// their issuer. The package implements the Tokens of a rule.Identity, for rules with keys
// jwt:CLAIM.
//
// [Open] reads the keys from a file. The file is a JWKS (RFC 7517) as issuers publish
// it, or has public keys and certificates in PEM.
//
// Verify accepts a token if all of the following is true. For other tokens it reports
// only false, because a reason would help an attacker:
//
//   - The token is signed, in compact form, with at most 8 KiB and 100 claims. No claim
//     name repeats. The encoding is canonical, so that no other text is the same token.
//   - The signature uses RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512
//     or EdDSA, with a key of the file for this algorithm. "none" and shared secrets
//     (HS256) are refused, so that a public key is never used as a secret.
//   - The key with the token's kid made the signature. Keys without a kid, as in PEM,
//     are used if no key of the file has the kid. At most four keys are tried. For a
//     token without a kid, keys without a kid come first, and then the order of the file.
//   - The token requires no extension (crit).
//   - The token has an expiry (exp) in the future. The nbf and iat, if present, are in
//     the past. Clocks may differ by Leeway.
//   - The issuer (iss) and the audience (aud) match the Config, if it has them.
//
// The dates of certificates are ignored: the operator trusts the key by adding it to the
// file.
//
// A cache keeps valid tokens until they expire, by a digest of all their bytes. The next
// request with the token then costs a hash instead of a signature. A second cache keeps
// up to 4,096 refused tokens for ten seconds. Invalid tokens therefore never evict valid
// tokens.
//
// Start with verifier.go, then claims.go and keys.go. cache.go is independent.
// github.com/go-jose/go-jose decodes the keys of a JWKS. github.com/golang-jwt/jwt
// verifies signatures and compares times.
package jwt
