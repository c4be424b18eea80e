// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

func newAccount(name string) *accountv1alpha1.Account {
	return &accountv1alpha1.Account{
		TypeMeta:   metav1.TypeMeta{APIVersion: accountv1alpha1.GroupVersion.String(), Kind: "Account"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       accountv1alpha1.AccountSpec{Roles: []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}},
	}
}

func newServiceCluster(account, name string) *regionv1alpha1.ServiceCluster {
	return &regionv1alpha1.ServiceCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: regionv1alpha1.GroupVersion.String(), Kind: "ServiceCluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: account, Name: name},
		Spec:       regionv1alpha1.ServiceClusterSpec{KubeconfigSecret: regionv1alpha1.ObjectReference{Name: name}},
	}
}

// object is the name of an object, and its kind. Each peer may have an object of this name.
type object struct {
	kind fanout.Kind
	key  types.NamespacedName
}

func (s *story) accountObject() object {
	return object{kind: account.Kind(), key: types.NamespacedName{Name: s.account}}
}

func (s *story) serviceCluster(name string) object {
	return object{kind: fanout.ServiceClusters(), key: types.NamespacedName{Namespace: s.account, Name: name}}
}

func (o object) String() string {
	if o.key.Namespace == "" {
		return o.kind.Kind + " " + o.key.Name
	}
	return o.kind.Kind + " " + o.key.String()
}

// in returns the client of o's resource in an API server.
func (o object) in(api region.API) dynamic.ResourceInterface {
	client := api.Dynamic().Resource(o.kind.Resource)
	if o.kind.Namespaced {
		return client.Namespace(o.key.Namespace)
	}
	return client
}

// found is the stage and the claim of an object in a peer. Its Claim is nil if the peer has no
// object.
type found = fanoutv1alpha1.Fanout

// find reads the object of o's name in each peer.
func (s *story) find(ctx context.Context, o object) (map[region.PeerName]found, error) {
	results, err := region.Each(ctx, s.ring, "read "+o.String(), region.All(), func(ctx context.Context, c *region.Conn) (found, error) {
		obj, err := o.in(c).Get(ctx, o.key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return found{}, nil
		} else if err != nil {
			return found{}, err
		}
		var typed struct {
			Spec struct {
				Fanout found `json:"fanout"`
			} `json:"spec"`
		}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &typed)
		return typed.Spec.Fanout, err
	})
	if err != nil {
		return nil, err
	}
	all := map[region.PeerName]found{}
	for outcome := range results.All() {
		all[outcome.Peer] = outcome.Value
	}
	return all, nil
}

// show prints a row per peer, about the object that the peer has under the name of o.
func (s *story) show(ctx context.Context, o object) error {
	all, err := s.find(ctx, o)
	if err != nil {
		return err
	}
	for _, file := range s.ring.files {
		stage, text := describe(o, all[file.Peer])
		s.out.row(file.Peer, stage, text)
	}
	return nil
}

func describe(o object, f found) (stage, text string) {
	if f.Claim == nil {
		return "-", "nothing of this name"
	}
	secondary := f.Claim.Role == fanoutv1alpha1.RoleSecondary
	switch {
	case f.Stage == fanoutv1alpha1.StageReserved && secondary:
		text = "the name, kept for " + f.Claim.Target
	case f.Stage == fanoutv1alpha1.StageReserved:
		text = "the " + o.kind.Kind + ", without effect yet"
	case secondary:
		text = "the same " + o.kind.Kind
	default:
		text = "the " + o.kind.Kind + " itself"
	}
	return string(f.Stage), text
}
