// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"time"

	"github.com/atoll-dev/atoll/internal/validity"
)

const (
	certificateNotice = 7 * 24 * time.Hour
	tokenNotice       = 10 * time.Minute

	serverCertificate validity.Kind = "certificate of the API server"
)

func judgeTerm(t validity.Term, now time.Time) finding {
	notice, in, remedy := certificateNotice, "7 days", "renew the client certificate in the kubeconfig"
	switch t.Kind {
	case validity.Plugin:
		return passed(checkExpiry, "a credential plugin provides and renews the credentials")
	case validity.Token:
		notice, in, remedy = tokenNotice, "10 minutes", "renew the token in the kubeconfig"
	case serverCertificate:
		remedy = "renew the API server's certificate"
	}
	until := t.To.UTC().Format(time.RFC3339)
	switch left := t.To.Sub(now); {
	case t.To.IsZero():
		return passed(checkExpiry, "%s: it does not show when it expires", t.Kind)
	case left <= 0:
		return failed(checkExpiry, remedy, "%s: expired at %s", t.Kind, until)
	case left < notice:
		return warned(checkExpiry, remedy, "%s: expires at %s, in less than %s", t.Kind, until, in)
	}
	return passed(checkExpiry, "%s: valid until %s", t.Kind, until)
}
