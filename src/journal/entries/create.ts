type Constructor = new () => Record<string, unknown>

const constructors = new WeakMap<object, Constructor>()

const makeConstructor = (prototype: object): Constructor => {
  function Fields(): void {}
  Fields.prototype = prototype
  return Fields as unknown as Constructor
}

/**
 * Creates an object with a prototype, but without running a constructor of the prototype. V8 keeps the fields of the object
 * inside it, unlike the fields of an `Object.create`.
 */
export const createWith = (prototype: object): Record<string, unknown> => {
  let constructor = constructors.get(prototype)
  if (constructor === undefined) constructors.set(prototype, (constructor = makeConstructor(prototype)))
  return new constructor()
}
