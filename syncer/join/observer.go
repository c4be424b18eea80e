// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Observer receives the events of an Approver and of a Renewer. A nil Observer and any nil field are valid. Hooks are
// called synchronously without a lock held, possibly from many goroutines, and must return quickly.
type Observer struct {
	// Approved is called after an Approver approved a request.
	Approved func(ctx context.Context, e DecideEvent)
	// Denied is called after an Approver denied a request. A token may be in the wrong hands.
	Denied func(ctx context.Context, e DecideEvent)
	// Expired is called after an Approver deleted a token that was never used.
	Expired func(ctx context.Context, e ExpireEvent)
	// Renewed is called after each attempt of a Renewer to get a certificate.
	Renewed func(ctx context.Context, e RenewEvent)
}

// DecideEvent is a decision about a request.
type DecideEvent struct {
	Target    string    // the SyncTarget; empty if the token is not known
	TargetUID types.UID // empty if the SyncTarget does not exist
	Request   string    // the name of the CertificateSigningRequest
	Requester string    // its user
	Message   string    // why
}

// ExpireEvent is a token that was never used.
type ExpireEvent struct {
	Target    string
	TargetUID types.UID // empty if the SyncTarget does not exist
}

// RenewEvent is an attempt to get a certificate.
type RenewEvent struct {
	Target  string
	Expires time.Time // of the present certificate; zero if the file has no certificate
	Err     error     // nil: it is new
}

func (o *Observer) approved(ctx context.Context, e DecideEvent) {
	if o != nil && o.Approved != nil {
		o.Approved(ctx, e)
	}
}

func (o *Observer) denied(ctx context.Context, e DecideEvent) {
	if o != nil && o.Denied != nil {
		o.Denied(ctx, e)
	}
}

func (o *Observer) expired(ctx context.Context, e ExpireEvent) {
	if o != nil && o.Expired != nil {
		o.Expired(ctx, e)
	}
}

func (o *Observer) renewed(ctx context.Context, e RenewEvent) {
	if o != nil && o.Renewed != nil {
		o.Renewed(ctx, e)
	}
}
