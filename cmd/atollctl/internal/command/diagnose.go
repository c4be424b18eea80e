// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/account"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

const lackTimeout = 3 * time.Second

// lack lists the required types that a peer does not serve. peerSet is true if the peer has no
// PeerSet.
type lack struct {
	types   []string
	peerSet bool
}

// lacking asks each peer for the types and the PeerSet that commands on a ring need. It returns a
// remedy for each peer that lacks one of them, and true if any peer does. It skips a peer that it
// cannot read.
func (s *session) lacking(ctx context.Context) (remedy string, ok bool) {
	if s.peers.Directory == nil {
		return "", false
	}
	// The command's timeout may have passed; this diagnosis still runs, since it explains the
	// failure.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lackTimeout)
	defer cancel()
	var remedies []string
	for o := range read(ctx, s.peers.Directory, "look for types", probe).All() {
		if o.Err != nil {
			continue
		}
		switch {
		case len(o.Value.types) > 0:
			remedies = append(remedies, fmt.Sprintf("peer %s does not serve %s: run %q", o.Peer, strings.Join(o.Value.types, ", "), s.program+" install-crds"))
		case o.Value.peerSet:
			remedies = append(remedies, fmt.Sprintf("peer %s has no PeerSet: run %q", o.Peer, s.program+" peer init"))
		}
	}
	return strings.Join(remedies, "; "), len(remedies) > 0
}

func probe(ctx context.Context, c *region.Conn) (lack, error) {
	var found lack
	_, err := c.Dynamic().Resource(peerSets).Get(ctx, fanoutv1alpha1.PeerSetName, metav1.GetOptions{})
	switch {
	case noSuchType(err):
		found.types = append(found.types, peerSets.GroupResource().String())
	case apierrors.IsNotFound(err):
		found.peerSet = true
	case err != nil:
		return lack{}, err
	}
	for _, kind := range account.Kinds() {
		_, err := c.Dynamic().Resource(kind.Resource).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case noSuchType(err):
			found.types = append(found.types, kind.Resource.GroupResource().String())
		case err != nil:
			return lack{}, err
		}
	}
	return found, nil
}
