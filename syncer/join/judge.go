// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
)

// token is the ServiceAccount of a token.
type token struct {
	uid     types.UID
	target  string
	expires time.Time
	usedBy  types.UID // the request that has used it; empty: none
}

// observation is all that a decision depends on.
type observation struct {
	request   *certificatesv1.CertificateSigningRequest
	namespace string // of tokens
	token     *token // of the requester; nil: the requester has none
	present   func(target string) bool
	now       time.Time
	longest   time.Duration
}

// action is the way in which an Approver treats a request.
type action int

const (
	// ignore leaves a request to others, or as it is decided.
	ignore action = iota
	// spend marks the token as used by the request. The request is judged again then.
	spend
	// approve approves it.
	approve
	// deny denies it.
	deny
)

// verdict is a decision. The reason is that of the condition of the request.
type verdict struct {
	action          action
	target          string
	reason, message string
}

// Reasons of the conditions of requests.
const (
	reasonJoined  = "AtollJoined"
	reasonRenewed = "AtollRenewed"
	reasonRefused = "AtollRefused"
)

// judge decides about a request.
func judge(o observation) verdict {
	r := o.request
	if isDecided(r) || r.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return verdict{}
	}
	if _, ok := accountOf(r.Spec.Username, o.namespace); ok {
		return judgeJoin(o)
	}
	target, ok := targetOf(r.Spec.Username)
	if !ok || !slices.Contains(r.Spec.Groups, Group) {
		return verdict{}
	}
	if err := check(r, target, o.longest); err != nil {
		return refuse(target, "%v", err)
	}
	if !o.present(target) {
		return refuse(target, "the SyncTarget %s does not exist, or is being deleted", target)
	}
	return verdict{approve, target, reasonRenewed, fmt.Sprintf("the cluster of the SyncTarget %s renews its certificate", target)}
}

// judgeJoin decides about a request that was made with a token.
func judgeJoin(o observation) verdict {
	r, t := o.request, o.token
	switch {
	case t == nil || string(t.uid) != r.Spec.UID:
		return refuse("", "the token is not known: it has expired, or was withdrawn")
	case !o.now.Before(t.expires):
		return refuse(t.target, "the token has expired at %s", t.expires.UTC().Format(time.RFC3339))
	case t.usedBy != "" && t.usedBy != r.UID:
		return refuse(t.target, "the token was used before, by another request: make another token, and find out who has used this one")
	}
	if err := check(r, t.target, o.longest); err != nil {
		return refuse(t.target, "%v", err)
	}
	switch {
	case !o.present(t.target):
		return refuse(t.target, "the SyncTarget %s does not exist, or is being deleted", t.target)
	case t.usedBy == "":
		return verdict{action: spend, target: t.target}
	}
	return verdict{approve, t.target, reasonJoined, fmt.Sprintf("the cluster of the SyncTarget %s joins", t.target)}
}

func refuse(target, format string, args ...any) verdict {
	return verdict{deny, target, reasonRefused, fmt.Sprintf(format, args...)}
}
