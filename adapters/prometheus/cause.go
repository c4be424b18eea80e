// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"errors"

	"github.com/atoll-dev/atoll/region"
)

// causes maps each Cause to its label value. The text of a Cause is for people and may change, dashboards keep these
// values.
var causes = map[region.Cause]string{
	region.CauseDNS:              "dns",
	region.CauseRefused:          "refused",
	region.CauseNoRoute:          "no_route",
	region.CauseConnectTimeout:   "connect_timeout",
	region.CauseLost:             "lost",
	region.CauseUnknownAuthority: "unknown_authority",
	region.CauseExpired:          "expired",
	region.CauseOtherHost:        "other_host",
	region.CauseTLS:              "tls",
	region.CauseTimeout:          "timeout",
	region.CauseWriteTimeout:     "write_timeout",
	region.CauseServerTimeout:    "server_timeout",
	region.CauseWebhookTimeout:   "webhook_timeout",
	region.CauseWebhook:          "webhook",
	region.CauseDenied:           "denied",
	region.CauseUnauthorized:     "unauthorized",
	region.CauseForbidden:        "forbidden",
	region.CauseThrottled:        "throttled",
	region.CauseServer:           "server",
	region.CauseNotServed:        "not_served",
	region.CauseOtherCluster:     "other_cluster",
}

// cause returns why a request to a peer failed: a value of causes, "canceled" or "other".
func cause(err error) string {
	if value, ok := causes[region.CauseOf(err)]; ok {
		return value
	}
	if errors.Is(err, context.Canceled) {
		return "canceled"
	}
	return other
}
