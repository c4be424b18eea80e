// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/atoll-dev/atoll/region"
)

// resource is the type of ClusterProfiles.
func resource() schema.GroupVersionResource {
	return inventory.ClusterProfileSchemeGroupVersionResource
}

// decode returns the ClusterProfile in obj.
func decode(obj *unstructured.Unstructured) (*inventory.ClusterProfile, error) {
	data, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, err
	}
	var p inventory.ClusterProfile
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("is not a ClusterProfile: %w", err)
	}
	return &p, nil
}

// property returns the value of a property of p.
func property(p *inventory.ClusterProfile, name string) (value string, ok bool) {
	i := slices.IndexFunc(p.Status.Properties, func(q inventory.Property) bool { return q.Name == name })
	if i < 0 {
		return "", false
	}
	return p.Status.Properties[i].Value, true
}

// provider returns the entry of the provider, and the field of p that it is in.
func provider(p *inventory.ClusterProfile, name string) (entry *inventory.AccessProvider, field string) {
	for _, list := range []struct {
		field   string
		entries []inventory.AccessProvider
	}{{"accessProviders", p.Status.AccessProviders}, {"credentialProviders", p.Status.CredentialProviders}} {
		for i := range list.entries {
			if list.entries[i].Name == name {
				return &list.entries[i], fmt.Sprintf("status.%s[%s]", list.field, name)
			}
		}
	}
	return nil, ""
}

// peerOf returns the peer that a ClusterProfile describes, and the ID that its cluster must have; empty: any. The error
// names the field, and is a *region.FieldError.
func (o *Options) peerOf(obj *unstructured.Unstructured) (peer region.Peer, id string, err error) {
	p, err := decode(obj)
	if err != nil {
		return region.Peer{}, "", err
	}
	peer = region.Peer{Name: region.PeerName(p.Name), Labels: p.Labels}
	if peer.Regions, err = o.regionsOf(p); err != nil {
		return region.Peer{}, "", err
	}
	if peer.Credentials, err = o.credentialsOf(p); err != nil {
		return region.Peer{}, "", err
	}
	uid, _ := property(p, UIDProperty)
	peer.UID = types.UID(uid)
	id, _ = property(p, ClusterIDProperty)
	return peer, id, nil
}
