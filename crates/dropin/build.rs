//! Gives the shared library the name by which programs ask the system for it (its soname).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let named = match os.as_str() {
        "macos" => "-Wl,-install_name,@rpath/libazekura_dropin.0.dylib",
        _ => "-Wl,-soname,libazekura_dropin.so.0",
    };
    println!("cargo::rustc-cdylib-link-arg={named}");
}
