// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
	"syscall"

	bolterrors "go.etcd.io/bbolt/errors"
)

// errDamaged means that bbolt read a page whose content is impossible.
var errDamaged = errors.New("page tree is damaged")

// guard runs fn. It converts a panic of bbolt, and a memory fault in the mapped file, to an error.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	return fn()
}

// explain adds path and operation to a system error, and a remedy if one is known.
func explain(path, op string, err error) error {
	remedy := ""
	switch {
	case hasErrno(err, syscall.ENOSPC):
		remedy = ": free space on the disk, then reopen"
	case hasErrno(err, syscall.EFBIG):
		remedy = ": raise the file size limit of the process, then reopen"
	case errors.Is(err, bolterrors.ErrMaxSizeReached):
		remedy = ": reopen with a larger MaxSize or a shorter Retention"
	case errors.Is(err, syscall.EROFS):
		remedy = ": the file system is read-only, mount it writable or use another path"
	case errors.Is(err, fs.ErrPermission):
		remedy = ": make file and directory writable for this user"
	case errors.Is(err, syscall.ENOTDIR):
		remedy = ": a part of the path is a file, use a directory"
	}
	return fmt.Errorf("wal %s: %s: %w%s", path, op, err, remedy)
}

// hasErrno reports whether err wraps number or contains the text of number: bbolt keeps only the text when it fails to
// grow the file.
func hasErrno(err error, number syscall.Errno) bool {
	return errors.Is(err, number) || strings.Contains(err.Error(), number.Error())
}
