package config

// beyondSchemaNames are the malformed files that the schema accepts, by why it does.
var beyondSchemaNames = map[string]string{
	"amounts: a pattern sees the form of 2s, 1MiB or 80%, and not how much it is": `
		ban-after-zero ban-for-too-long ban-for-too-short front-body-idle-timeout-zero front-max-header-too-little
		front-max-header-too-much front-upstream-h2c-port-zero identity-jwt-leeway-too-long
		identity-trusted-proxies-prefix-too-long limit-burst-takes-centuries limit-count-too-great
		limit-period-too-long limit-period-zero max-memory-too-little max-memory-too-much
		proxy-listen-port-too-great proxy-timeout-too-long proxy-upstream-port-too-great shutdown-timeout-too-long
		soft-hundred-percent soft-zero-percent store-timeout-too-long store-timeout-zero`,
	"the form of the file: YAML's own means, spellings of one number, and names that are one to us alone": `
		burst-thousands identity-user-ip-header-twice match-header-twice version-with-point yaml-merge-key yaml-tag`,
	"between fields: what one field means for another, in one section or across the file": `
		admin-listen-is-the-proxy admin-listen-twice ban-after-below-an-override ban-after-below-the-limit
		ban-after-below-the-limit-in-longer-time ban-of-a-limit-of-zero burst-of-a-limit-of-zero
		cost-above-an-override cost-above-burst front-log-access-file-beside-off
		front-log-access-file-without-access front-request-id-of-a-rule front-tls-cert-without-key
		front-tls-client-auth-alone front-tls-client-auth-without-authorities front-tls-client-ca-alone
		front-tls-empty-section front-tls-key-without-cert front-upstream-tls-cert-without-key
		front-upstream-tls-key-without-cert front-upstream-tls-of-a-socket front-upstream-tls-of-http
		front-upstream-unix-is-itself identity-jwt-without-keys identity-user-ip-headers-without-proxies
		key-jwt-without-keys key-region-without-database key-user-ip-without-headers key-xff-ip-without-proxies
		limit-log-beyond-memory limit-log-too-long limit-never-reached limit-never-reached-in-a-log
		limit-period-twice max-cost-above-limit max-cost-above-override max-cost-with-number max-cost-without-header
		on-exceed-degrade-header-of-another-rule on-exceed-degrade-header-of-the-key on-exceed-delay-too-far-ahead
		on-exceed-delay-with-window on-exceed-hard-below-a-window-begun on-exceed-hard-below-an-override
		on-exceed-hard-below-the-burst on-exceed-hard-below-the-limit on-exceed-hard-below-the-rate
		on-exceed-hard-is-the-limit on-exceed-hard-log-too-long on-exceed-redirect-with-status-of-refusal
		on-exceed-status-redirect-of-reject overrides-beyond-memory overrides-burst-with-window
		overrides-delay-too-far-ahead overrides-no-address overrides-no-region overrides-of-all
		overrides-windows-covered proxy-upstream-empty-section proxy-upstream-is-itself proxy-upstream-missing
		rule-name-of-a-ban rule-name-of-a-hard-limit rule-name-of-a-limit rule-name-of-an-override rule-name-twice
		rule-never-decides rule-never-decides-before-its-cover rule-never-decides-twice-the-same
		rule-never-decides-under-a-ban soft-of-a-limit-of-zero`,
	"lists: entries that are the same, or do not go together": `
		front-proxy-protocol-twice identity-trusted-proxies-twice identity-trusted-proxies-unix-twice
		key-all-with-others key-part-twice overrides-same-address-twice overrides-same-host-twice`,
	"texts: what a name, an address, a path or a URL says beyond its form": `
		admin-health-without-host admin-listen-without-host cost-header-host front-listen-systemd-name-too-long
		front-listen-systemd-name-with-colon front-listen-unix-control-character front-listen-unix-folder
		front-listen-unix-too-long front-listen-unix-with-host front-proxy-protocol-everybody
		front-proxy-protocol-host-bits front-request-id-cookie front-request-id-forwarded
		front-request-id-of-answers front-request-id-of-soft-limits front-upstream-colon-without-port
		front-upstream-grpc front-upstream-h2c-without-host front-upstream-scheme-misspelled
		front-upstream-tls-server-name-with-port front-upstream-with-query identity-trusted-proxies-everybody
		identity-trusted-proxies-host-bits identity-trusted-proxies-ipv4-in-ipv6 identity-user-ip-header-cookie
		identity-user-ip-header-is-a-list key-header-name-with-space match-descriptor-with-space
		match-descriptor-without-value match-header-name-with-space match-host-star-within match-host-with-port
		match-method-lower-case match-method-with-space match-path-backslash match-path-control-character
		match-path-dot-segment match-path-double-slash match-path-escaped match-path-parameter-of-a-dot-segment
		match-path-parent-segment match-path-star-within match-path-with-fragment match-path-with-query
		on-exceed-degrade-header-cookie on-exceed-degrade-header-forwarded on-exceed-degrade-header-framing
		on-exceed-degrade-header-host on-exceed-degrade-header-of-soft-limits on-exceed-location-becomes-a-host
		on-exceed-location-path-in-host on-exceed-location-path-is-host on-exceed-location-with-control-character
		on-exceed-location-with-faulty-escape on-exceed-location-with-faulty-port
		on-exceed-location-with-other-braces on-exceed-location-with-password on-exceed-location-with-space
		on-exceed-location-with-two-slashes on-exceed-location-without-host overrides-empty-value
		overrides-value-too-long proxy-listen-host-impossible proxy-listen-ipv6-without-brackets
		proxy-upstream-scheme-unknown proxy-upstream-with-password proxy-upstream-with-path
		proxy-upstream-without-host rule-name-too-long rule-name-with-space`,
}
