//! Asks the linker to lay similar functions side by side, where it knows how to: a wheel is a twentieth smaller then.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// Of lld, which is what Rust links with on 64-bit Linux.
const OPTION: &str = "-Wl,--bp-compression-sort=function";

/// Whether a library of nothing can be linked with the option, by what links the extension.
fn is_known() -> Option<bool> {
    let (rustc, out, target) = (env::var_os("RUSTC")?, env::var_os("OUT_DIR")?, env::var("TARGET").ok()?);
    let source = Path::new(&out).join("nothing.rs");
    std::fs::write(&source, "").ok()?;
    let mut command = Command::new(rustc);
    command.args(["--crate-type=cdylib", "--target", &target, "-C", &format!("link-arg={OPTION}")]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        command.args(["-C", &format!("linker={linker}")]);
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    command.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    command.arg("-o").arg(Path::new(&out).join("nothing.so")).arg(source);
    Some(command.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?.success())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("PROFILE").as_deref() == Ok("release") && is_known() == Some(true) {
        println!("cargo::rustc-cdylib-link-arg={OPTION}");
    }
}
