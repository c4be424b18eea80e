// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

var bindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}

func newAccount(name string) *accountv1alpha1.Account {
	return &accountv1alpha1.Account{
		TypeMeta:   metav1.TypeMeta{APIVersion: accountv1alpha1.GroupVersion.String(), Kind: "Account"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: accountv1alpha1.AccountSpec{
			Roles:    []accountv1alpha1.AccountRole{accountv1alpha1.AccountProvider},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}},
		},
	}
}

func (s *story) addAccount(ctx context.Context) error {
	op, err := s.loops.coordinator.Add(ctx, newAccount("loodse"), fanout.AddOptions{})
	if err != nil {
		return err
	}
	s.out.note("Account loodse: %s", op.State)
	return s.showAccount(ctx)
}

// showAccount waits until the Account is Ready in each peer, and prints its objects there.
func (s *story) showAccount(ctx context.Context) error {
	for _, name := range s.plant.names {
		conn, err := s.loops.ring.Conn(name)
		if err != nil {
			return err
		}
		var present *unstructured.Unstructured
		var subjects []string
		err = until(ctx, func() (bool, error) {
			if present, err = conn.Dynamic().Resource(account.Kind().Resource).Get(ctx, "loodse", metav1.GetOptions{}); err != nil {
				return false, err
			}
			subjects, err = s.bound(ctx, conn)
			return phaseOf(present) == string(accountv1alpha1.AccountReady) && len(subjects) > 0, err
		})
		if err != nil {
			return err
		}
		s.out.row(name, phaseOf(present), "namespace loodse,", "Provider: "+strings.Join(subjects, ", "))
	}
	return nil
}

// bound returns the subjects of the role Provider in the Account's namespace.
func (s *story) bound(ctx context.Context, c *region.Conn) ([]string, error) {
	binding, err := c.Dynamic().Resource(bindings).Namespace("loodse").
		Get(ctx, account.RoleName(accountv1alpha1.AccountProvider), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var names []string
	subjects, _, err := unstructured.NestedSlice(binding.Object, "subjects")
	for _, subject := range subjects {
		if subject, ok := subject.(map[string]any); ok {
			names = append(names, fmt.Sprint(subject["kind"], " ", subject["name"]))
		}
	}
	return names, err
}

// repair deletes a RoleBinding in one peer and waits until the loops restore it.
func (s *story) repair(ctx context.Context) error {
	conn, err := s.loops.ring.Conn("us-east")
	if err != nil {
		return err
	}
	err = conn.Dynamic().Resource(bindings).Namespace("loodse").
		Delete(ctx, account.RoleName(accountv1alpha1.AccountProvider), metav1.DeleteOptions{})
	if err != nil {
		return err
	}
	s.out.note("The RoleBinding in us-east is deleted. The Controller of Accounts makes it anew:")
	return s.showAccount(ctx)
}

func phaseOf(obj *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
	return phase
}
